#include "cache/piece_lists.h"
#include "cache/policies.h"

namespace leanstream::cache {
namespace {

class LruPolicy : public Policy {
 public:
  explicit LruPolicy(uint32_t n_pieces) : order_(n_pieces, 1) {}

  void demand(std::span<const Piece> hits, std::span<const Piece>) override {
    for (const Piece piece : hits) {
      if (!order_.linked(piece)) continue;
      order_.remove(piece);
      order_.append(0, piece);
    }
  }

  // What is held was demanded or inserted lately: the search ends at once unless few pieces are not held.
  Piece victim(Piece, const Residency& residency) override {
    return order_.oldest(0, [&](Piece piece) { return !residency.held(piece); });
  }

  void insert(Piece piece) override { order_.append(0, piece); }
  void remove(Piece piece) override { order_.remove(piece); }

 private:
  PieceLists order_;
};

}  // namespace

std::unique_ptr<Policy> lru_policy(uint32_t n_pieces) {
  return std::make_unique<LruPolicy>(n_pieces);
}

}  // namespace leanstream::cache
