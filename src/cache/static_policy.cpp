#include <vector>

#include "cache/piece_lists.h"
#include "cache/policies.h"

namespace leanstream::cache {
namespace {

// Pieces outside the set get in by force only, and go again in order of arrival.
class StaticPolicy : public Policy {
 public:
  StaticPolicy(uint32_t n_pieces, std::span<const Piece> set) : in_set_(n_pieces, false), strangers_(n_pieces, 1) {
    for (const Piece piece : set) in_set_[piece] = true;
  }

  void demand(std::span<const Piece>, std::span<const Piece>) override {}

  Piece victim(Piece, const Residency& residency) override {
    return strangers_.oldest(0, [&](Piece piece) { return !residency.held(piece); });
  }
  bool admits(Piece incoming, Piece) const override { return in_set_[incoming]; }

  void insert(Piece piece) override {
    if (!in_set_[piece]) strangers_.append(0, piece);
  }
  void remove(Piece piece) override {
    if (strangers_.linked(piece)) strangers_.remove(piece);
  }

 private:
  std::vector<bool> in_set_;  // [n_pieces]
  PieceLists strangers_;
};

}  // namespace

std::unique_ptr<Policy> static_policy(uint32_t n_pieces, std::span<const Piece> set) {
  return std::make_unique<StaticPolicy>(n_pieces, set);
}

}  // namespace leanstream::cache
