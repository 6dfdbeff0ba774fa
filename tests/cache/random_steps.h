#pragma once

#include <cstdint>
#include <random>

#include "cache/steps.h"

namespace leanstream::cache {

struct StepsShape {
  uint32_t n_pieces = 0;
  size_t n_steps = 0;
  uint32_t most_per_step = 1;
  double skew =
      1;  // piece i is drawn about in proportion to (i + 1)^-skew, in an order of numbers shuffled by the seed
};

Steps random_steps(const StepsShape& shape, std::mt19937& random);
// Every piece, in steps of `per_step`, again and again.
Steps cyclic_steps(uint32_t n_pieces, uint32_t per_step, size_t rounds);

}  // namespace leanstream::cache
