#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/abi/weight_type.h"

namespace leanstream::convert {

// A small generator that gives the same numbers everywhere (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// Endless random weights of one type and standard deviation, at memory speed: a pool of really quantised blocks, drawn
// from at random. Rows differ, though blocks recur.
class RandomWeights {
 public:
  RandomWeights(WeightType type, float deviation, Random& random);

  void fill(Random& random, std::span<std::byte> out) const;

 private:
  size_t unit_bytes_;            // of one thing to draw: 32 or 256 elements
  std::vector<std::byte> pool_;  // kUnits of them
};

}  // namespace leanstream::convert
