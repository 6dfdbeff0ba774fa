#include <algorithm>
#include <array>
#include <vector>

#include "cache/piece_lists.h"
#include "cache/policies.h"

namespace leanstream::cache {
namespace {

// Names follow the paper: T1 and T2 are the resident pieces demanded once and more than once lately, B1 and B2 what was
// given up from them, p the share of the slots that T1 aims at. Of a cache of c slots, T1 and B1 hold at most c pieces
// and all four at most 2c. The paper's requests come one by one; of a step, first all pieces are looked up and p
// adapted, then the missing ones are inserted one by one.
class ArcPolicy : public Policy {
 public:
  ArcPolicy(uint32_t n_pieces, uint32_t n_slots)
      : c_(n_slots), lists_(n_pieces, kLists), list_of_(n_pieces, kNowhere) {}

  void demand(std::span<const Piece> hits, std::span<const Piece> misses) override {
    for (const Piece piece : hits)
      if (list_of_[piece] != kNowhere) move(piece, kT2);
    for (const Piece piece : misses) {
      if (list_of_[piece] == kB1) p_ = std::min(c_, p_ + std::max(1u, size_[kB2] / size_[kB1]));
      if (list_of_[piece] == kB2) p_ -= std::min(p_, std::max(1u, size_[kB1] / size_[kB2]));
    }
  }

  // The paper's REPLACE; where the oldest of its first choice is held, the other list gives. What is held was demanded
  // or inserted lately, so looking past the oldest is worth it only where both are held.
  Piece victim(Piece incoming, const Residency& residency) override {
    const auto free = [&](Piece piece) { return piece != kNone && !residency.held(piece); };
    const bool from_t1 = size_[kT1] > 0 && (size_[kT1] > p_ || (list_of_[incoming] == kB2 && size_[kT1] == p_));
    const List first = from_t1 ? kT1 : kT2, second = from_t1 ? kT2 : kT1;
    for (const List list : {first, second})
      if (const Piece piece = lists_.oldest(list); free(piece)) return piece;
    const Piece piece = lists_.oldest(first, free);
    return piece != kNone ? piece : lists_.oldest(second, free);
  }

  void insert(Piece piece) override {
    const bool seen_lately = list_of_[piece] != kNowhere;
    move(piece, seen_lately ? kT2 : kT1);
    // Only remembered pieces go: |T1| + |T2| <= c.
    while (size_[kT1] + size_[kB1] > c_ && size_[kB1] > 0) remove(lists_.oldest(kB1));
    while (size_[kT1] + size_[kT2] + size_[kB1] + size_[kB2] > 2 * uint64_t{c_} && size_[kB2] > 0)
      remove(lists_.oldest(kB2));
  }

  void remove(Piece piece) override { move(piece, kNowhere); }
  void evict(Piece piece) override { move(piece, list_of_[piece] == kT1 ? kB1 : kB2); }

 private:
  enum List : uint8_t { kT1, kT2, kB1, kB2, kLists, kNowhere = kLists };

  void move(Piece piece, List to) {
    const List from = list_of_[piece];
    if (from != kNowhere) {
      lists_.remove(piece);
      --size_[from];
    }
    if (to != kNowhere) {
      lists_.append(to, piece);
      ++size_[to];
    }
    list_of_[piece] = to;
  }

  const uint32_t c_;
  uint32_t p_ = 0;
  PieceLists lists_;
  std::vector<List> list_of_;  // [n_pieces]
  std::array<uint32_t, kLists> size_ = {};
};

}  // namespace

std::unique_ptr<Policy> arc_policy(uint32_t n_pieces, uint32_t n_slots) {
  return std::make_unique<ArcPolicy>(n_pieces, n_slots);
}

}  // namespace leanstream::cache
