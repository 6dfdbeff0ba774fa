#include <cassert>
#include <vector>

#include "cache/policies.h"

namespace leanstream::cache {
namespace {

// A binary heap of pieces, the one with the furthest next demand on top.
class FurthestFirst {
 public:
  FurthestFirst(uint32_t n_pieces, uint32_t n_slots, const std::vector<uint32_t>& next_step)
      : next_step_(next_step), place_(n_pieces, kNone) {
    heap_.reserve(n_slots);
  }

  // The furthest piece that is not held; kNone where there is none. Looks at the held ones above it, and no others.
  Piece furthest(const Residency& residency, size_t at = 0) const {
    if (at >= heap_.size()) return kNone;
    if (!residency.held(heap_[at])) return heap_[at];
    const Piece left = furthest(residency, 2 * at + 1), right = furthest(residency, 2 * at + 2);
    if (left == kNone || right == kNone) return left == kNone ? right : left;
    return next_step_[left] >= next_step_[right] ? left : right;
  }
  bool contains(Piece piece) const { return place_[piece] != kNone; }

  void add(Piece piece) {
    heap_.push_back(piece);
    rise(heap_.size() - 1);
  }
  void remove(Piece piece) {
    const size_t at = place_[piece];
    place_[piece] = kNone;
    const Piece last = heap_.back();
    heap_.pop_back();
    if (last == piece) return;
    put(at, last);
    rise(at);
    sink(place_[last]);
  }
  // Its next demand has moved further away.
  void moved_away(Piece piece) { rise(place_[piece]); }

 private:
  void put(size_t at, Piece piece) {
    heap_[at] = piece;
    place_[piece] = static_cast<uint32_t>(at);
  }
  void rise(size_t at) {
    const Piece piece = heap_[at];
    for (; at > 0; at = (at - 1) / 2) {
      const Piece parent = heap_[(at - 1) / 2];
      if (next_step_[parent] >= next_step_[piece]) break;
      put(at, parent);
    }
    put(at, piece);
  }
  void sink(size_t at) {
    const Piece piece = heap_[at];
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && next_step_[heap_[child + 1]] > next_step_[heap_[child]]) ++child;
      if (next_step_[piece] >= next_step_[heap_[child]]) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, piece);
  }

  const std::vector<uint32_t>& next_step_;
  std::vector<Piece> heap_;
  std::vector<uint32_t> place_;  // [n_pieces] index in heap_, or kNone
};

class BeladyPolicy : public Policy {
 public:
  BeladyPolicy(uint32_t n_pieces, uint32_t n_slots, const Steps& steps)
      : following_(steps.all().size()), next_step_(n_pieces, kNever), order_(n_pieces, n_slots, next_step_) {
    assert(steps.count() < kNever);
    std::vector<uint32_t> next(n_pieces, kNever);
    size_t at = following_.size();
    for (size_t i = steps.count(); i > 0; --i) {
      const std::span<const Piece> step = steps.step(i - 1);
      for (auto piece = step.rbegin(); piece != step.rend(); ++piece) {
        following_[--at] = next[*piece];
        next[*piece] = static_cast<uint32_t>(i - 1);
      }
    }
  }

  void demand(std::span<const Piece> hits, std::span<const Piece> misses) override {
    auto hit = hits.begin();
    auto miss = misses.begin();
    for (size_t left = hits.size() + misses.size(); left > 0; --left) {  // in the run's order
      const bool resident = miss == misses.end() || (hit != hits.end() && *hit < *miss);
      const Piece piece = resident ? *hit++ : *miss++;
      next_step_[piece] = following_[demanded_++];
      if (order_.contains(piece)) order_.moved_away(piece);
    }
  }

  Piece victim(Piece, const Residency& residency) override { return order_.furthest(residency); }

  bool admits(Piece incoming, Piece victim) const override {
    return victim == kNone || next_step_[incoming] < next_step_[victim];
  }

  void insert(Piece piece) override { order_.add(piece); }
  void remove(Piece piece) override { order_.remove(piece); }

 private:
  static constexpr uint32_t kNever = UINT32_MAX;

  std::vector<uint32_t> following_;  // of each demand of the run, the step that demands its piece next
  std::vector<uint32_t> next_step_;  // [n_pieces]
  FurthestFirst order_;
  size_t demanded_ = 0;
};

}  // namespace

std::unique_ptr<Policy> belady_policy(uint32_t n_pieces, uint32_t n_slots, const Steps& steps) {
  return std::make_unique<BeladyPolicy>(n_pieces, n_slots, steps);
}

}  // namespace leanstream::cache
