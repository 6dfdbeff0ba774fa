#pragma once

#include <cstddef>

#include "kernels/abi/weight_type.h"

namespace leanstream::reference {

// out[0..n) = the numbers that `blocks` stores: row_bytes(type, n) bytes, n a multiple of the type's block.
void dequantize(WeightType type, const std::byte* blocks, size_t n, float* out);

}  // namespace leanstream::reference
