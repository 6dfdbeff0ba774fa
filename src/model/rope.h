#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace leanstream::model {

// The rotation of each pair of a head at a position: angle_i = position * frequency_i, scaled by a magnitude. What
// linear scaling, YaRN and per-pair factors do is folded into the frequencies once. Immutable, thread-safe.
class RopeTable {
 public:
  // `factors` [n_rot / 2] divide the frequencies (rope_freqs.weight of Llama 3 files); nullptr for none.
  RopeTable(const Rope& rope, const float* factors);

  uint32_t pairs() const { return static_cast<uint32_t>(frequencies_.size()); }  // n_rot / 2

  // cos, sin: [pairs()] for one position, magnitude included. Computed in double: exact far beyond any context.
  void fill(uint32_t position, float* cos, float* sin) const;

 private:
  std::vector<double> frequencies_;  // radians per position
  double magnitude_;
};

}  // namespace leanstream::model
