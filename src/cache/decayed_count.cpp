#include "cache/decayed_count.h"

#include <cmath>

namespace leanstream::cache {

DecayedCount::DecayedCount(uint32_t half_life_steps) : half_life_steps_(half_life_steps) {
  constexpr double kUnit = kOne;
  for (size_t apart = 0;; ++apart) {
    const double gain = std::log2(1 + std::exp2(-static_cast<double>(apart) / kUnit));
    const auto rounded = static_cast<uint16_t>(std::lround(gain * kUnit));
    if (rounded == 0) return;
    gain_.push_back(rounded);
  }
}

}  // namespace leanstream::cache
