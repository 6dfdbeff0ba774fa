#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace leanstream::model {
namespace {

// The pair, as a real number, that makes `turns` full turns within the original context.
double pair_with_turns(const Rope& rope, double turns) {
  return rope.n_rot * std::log(rope.yarn_original_context / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.freq_base));
}

// How much of each pair's own frequency YaRN keeps: 1 for fast pairs, 0 for slow ones, a linear ramp between.
class YarnRamp {
 public:
  explicit YarnRamp(const Rope& rope)
      : first_(std::max(0.0, std::floor(pair_with_turns(rope, rope.yarn_beta_fast)))),
        last_(std::min(rope.n_rot - 1.0, std::ceil(pair_with_turns(rope, rope.yarn_beta_slow)))) {}

  double kept(uint32_t pair) const {
    return 1.0 - std::clamp((pair - first_) / std::max(0.001, last_ - first_), 0.0, 1.0);
  }

 private:
  double first_, last_;
};

}  // namespace

RopeTable::RopeTable(const Rope& rope, const float* factors)
    : frequencies_(rope.n_rot / 2), magnitude_(rope.magnitude) {
  const bool yarn = rope.yarn_ext_factor > 0.0;
  const YarnRamp ramp(rope);
  for (uint32_t i = 0; i < pairs(); ++i) {
    const double own = std::pow(rope.freq_base, -2.0 * i / rope.n_rot) / (factors ? factors[i] : 1.0);
    const double kept = yarn ? rope.yarn_ext_factor * ramp.kept(i) : 0.0;
    frequencies_[i] = own * rope.freq_scale * (1.0 - kept) + own * kept;
  }
}

void RopeTable::fill(uint32_t position, float* cos, float* sin) const {
  for (uint32_t i = 0; i < pairs(); ++i) {
    const double angle = position * frequencies_[i];
    cos[i] = static_cast<float>(std::cos(angle) * magnitude_);
    sin[i] = static_cast<float>(std::sin(angle) * magnitude_);
  }
}

}  // namespace leanstream::model
