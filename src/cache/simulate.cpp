#include "cache/simulate.h"

#include <vector>

#include "cache/policies.h"

namespace leanstream::cache {

Misses simulate(const Steps& steps, std::span<const uint32_t> piece_bytes, Cache& cache, Keep keep) {
  Misses misses;
  std::vector<Slot> slots(piece_bytes.size());
  for (size_t i = 0; i < steps.count(); ++i) {
    const std::span<const Piece> pieces = steps.step(i);
    const auto [step, missing] = cache.demand(pieces, slots);
    if (keep == Keep::kAfterStep) cache.retire(step);
    misses.demanded += pieces.size();
    misses.missed += missing.size();
    for (const Piece piece : pieces) misses.demanded_bytes += piece_bytes[piece];
    for (const Piece piece : missing) {
      misses.missed_bytes += piece_bytes[piece];
      cache.offer(piece, keep == Keep::kAfterStep ? 0 : step);
    }
    cache.retire(step);
  }
  return misses;
}

Misses least_misses(const Steps& steps, std::span<const uint32_t> piece_bytes, uint32_t n_slots) {
  const auto n_pieces = static_cast<uint32_t>(piece_bytes.size());
  Cache cache(n_pieces, n_slots, belady_policy(n_pieces, n_slots, steps));
  return simulate(steps, piece_bytes, cache, Keep::kAfterStep);
}

}  // namespace leanstream::cache
