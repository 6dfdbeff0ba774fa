#pragma once

#include <cstddef>

#include "kernels/abi/weight_type.h"

namespace leanstream::reference {

// out[0..n) = the numbers that `blocks` stores: row_bytes(type, n) bytes, n a multiple of the type's block.
void dequantize(WeightType type, const std::byte* blocks, size_t n, float* out);

// The inverse, rounded: fills row_bytes(type, n) bytes of `out` from x[0..n). Deterministic. Q4_0 to Q8_0 take their
// scale from a block's extreme values; K-types search scales that keep the squared error small. A block that holds a
// NaN, an infinity or a number beyond 8e6 gets NaN as its scale: it reads back as NaN, never as other numbers.
void quantize(WeightType type, const float* x, size_t n, std::byte* out);

}  // namespace leanstream::reference
