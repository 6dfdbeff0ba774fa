#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/abi/weight_type.h"

namespace leanstream::reference {

// The numbers inside one block of a quantised weight type:
//   element i = (d * scale[g]) * q[i] - dmin * min[g],  g = i / group_elements(type).
// Types without sub-scales have scale 1; types with one offset per block keep it in dmin, with min = -1.
struct Block {
  float d = 0.0f;     // a half in the file
  float dmin = 0.0f;  // a half in the file; 0 for symmetric types
  std::array<int8_t, 16> scale{};
  std::array<int8_t, 16> min{};
  std::array<int8_t, 256> q{};
};

// Consecutive elements that share one scale: 16 or 32.
uint32_t group_elements(WeightType type);

// Between the file's bytes (traits(type).block_bytes of them) and their numbers. `type` is a quantised type. The caller
// of pack_block guarantees that every number fits its field, and that d and dmin are values of a half.
Block unpack_block(WeightType type, const std::byte* bytes);
void pack_block(WeightType type, const Block& block, std::byte* bytes);

}  // namespace leanstream::reference
