#pragma once

#include <cstdint>
#include <span>

#include "cache/cache.h"
#include "cache/steps.h"

namespace leanstream::cache {

struct Misses {
  uint64_t demanded = 0;  // pieces
  uint64_t missed = 0;    // of them, those without a slot
  uint64_t demanded_bytes = 0;
  uint64_t missed_bytes = 0;

  double ratio() const { return demanded == 0 ? 0 : static_cast<double>(missed) / static_cast<double>(demanded); }
};

// When the pieces that a step missed are offered to the cache.
enum class Keep {
  kWithinStep,  // while the step is held: none of its pieces makes room for another. What a run can do
  kAfterStep,   // when it is over: any set of as many pieces as there are slots can stay. What bounds every run
};

// Runs `steps` through a cache from its present state. piece_bytes: [n_pieces].
Misses simulate(const Steps& steps, std::span<const uint32_t> piece_bytes, Cache& cache, Keep keep);

// The least that any policy can miss with n_slots slots, from empty, whatever it knows: Belady's optimum. In pieces,
// and in bytes too where all pieces are of one size.
Misses least_misses(const Steps& steps, std::span<const uint32_t> piece_bytes, uint32_t n_slots);

}  // namespace leanstream::cache
