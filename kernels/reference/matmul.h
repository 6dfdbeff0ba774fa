#pragma once

#include "kernels/cpu/kernels.h"

namespace leanstream::reference {

// The scalar twins of kernels::Kernels' matrix functions: the same contracts, and the same bits (docs/kernels.md has
// the order of every operation). `w` is in file layout.
void pack_panel(WeightType type, uint32_t cols, uint32_t n_rows, const std::byte* rows, size_t row_stride,
                std::byte* panel);
// The inverse: the file's rows of a panel, back to back.
void unpack_panel(WeightType type, uint32_t cols, uint32_t n_rows, const std::byte* panel, std::byte* rows);
void matmul(const Matrix& w, const kernels::Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
            size_t out_stride);
void quantize(const float* x, uint32_t cols, int8_t* q8, float* scale, int32_t* sum16);

}  // namespace leanstream::reference
