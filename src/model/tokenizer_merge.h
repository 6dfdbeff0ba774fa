#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/tokenizer.h"

namespace leanstream::model {

// A stretch of the text being merged. Symbols form a list in text order; a merged-away symbol has size 0.
struct Symbol {
  uint32_t begin = 0;  // byte offset in the text
  uint32_t size = 0;
  uint32_t prev = 0;
  uint32_t next = 0;
  Token token = -1;  // what it would be encoded as; -1 when it is no token (yet)
};
constexpr uint32_t kNoSymbol = UINT32_MAX;

// Two neighbours that may become one token. Lower cost merges first, then the leftmost.
struct Merge {
  uint32_t cost = 0;
  Token token = -1;
};

// Merges neighbouring symbols, cheapest first, until nothing can be merged: O(n log n), no recursion. Keeps its memory
// from one text to the next. Single-thread.
class SymbolMerger {
 public:
  void clear() { symbols_.clear(); }

  void append(uint32_t size, Token token) {
    const uint32_t i = static_cast<uint32_t>(symbols_.size());
    const uint32_t begin = i == 0 ? 0 : symbols_[i - 1].begin + symbols_[i - 1].size;
    symbols_.push_back({begin, size, i == 0 ? kNoSymbol : i - 1, kNoSymbol, token});
    if (i > 0) symbols_[i - 1].next = i;
  }

  // find_merge(left, right) -> std::optional<Merge>, of two adjacent symbols.
  template <typename FindMerge>
  void run(const FindMerge& find_merge) {
    candidates_.clear();
    for (uint32_t i = 1; i < symbols_.size(); ++i) consider(i - 1, i, find_merge);
    std::make_heap(candidates_.begin(), candidates_.end());
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      const uint32_t left_index = best.left();
      Symbol& left = symbols_[left_index];
      Symbol& right = symbols_[best.right];
      // Out of date when either was merged since: then it is gone or larger.
      if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
      left.size = best.size;
      left.token = best.token;
      left.next = right.next;
      right.size = 0;
      if (left.next != kNoSymbol) symbols_[left.next].prev = left_index;
      if (left.prev != kNoSymbol && consider(left.prev, left_index, find_merge)) push();
      if (left.next != kNoSymbol && consider(left_index, left.next, find_merge)) push();
    }
  }

  // fn(symbol) for each that is left, in text order.
  template <typename Fn>
  void for_each(const Fn& fn) const {
    for (uint32_t i = symbols_.empty() ? kNoSymbol : 0; i != kNoSymbol; i = symbols_[i].next) fn(symbols_[i]);
  }

 private:
  struct Candidate {
    uint64_t order;  // cost, then the left symbol's index
    uint32_t right;
    uint32_t size;  // of both
    Token token;
    uint32_t left() const { return static_cast<uint32_t>(order); }
    bool operator<(const Candidate& other) const { return order > other.order; }  // the heap's top is the least
  };

  template <typename FindMerge>
  bool consider(uint32_t left, uint32_t right, const FindMerge& find_merge) {
    const std::optional<Merge> merge = find_merge(symbols_[left], symbols_[right]);
    if (!merge) return false;
    candidates_.push_back(
        {uint64_t{merge->cost} << 32 | left, right, symbols_[left].size + symbols_[right].size, merge->token});
    return true;
  }
  void push() { std::push_heap(candidates_.begin(), candidates_.end()); }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
};

}  // namespace leanstream::model
