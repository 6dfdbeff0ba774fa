#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leanstream::cache {

// Exponentially decayed counts, kept as logarithms that need no decaying: a demand at time t adds 2^t, time being
// measured in half-lives, so all counts of one moment share the factor 2^t and compare as they are. Fixed point, 1/256
// of a doubling.
class DecayedCount {
 public:
  using Log = uint64_t;
  static constexpr Log kOne = 256;              // a doubling, and a half-life
  static constexpr Log kNever = 0;              // the count of what was never demanded
  static constexpr Log kBeginning = 64 * kOne;  // the time of step 0: nothing counts for less than what came before it

  explicit DecayedCount(uint32_t half_life_steps);

  Log time_of(uint64_t step) const { return kBeginning + step * kOne / half_life_steps_; }

  // log2(2^count + 2^now).
  Log plus_one(Log count, Log now) const {
    const Log larger = count > now ? count : now;
    const Log apart = count > now ? count - now : now - count;
    return apart < gain_.size() ? larger + gain_[apart] : larger;
  }

 private:
  const uint32_t half_life_steps_;
  std::vector<uint16_t> gain_;  // [d] = log2(1 + 2^-d), up to where it rounds to 0
};

}  // namespace leanstream::cache
