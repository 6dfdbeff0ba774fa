#pragma once

#include "kernels/cpu/kernels.h"

namespace leanstream::kernels {

// The matrix half of a Kernels table: same names, same contracts. kernels.h documents them.
struct MatrixKernels {
  decltype(Kernels::pack_panel) pack_panel;
  decltype(Kernels::matmul) matmul;
  decltype(Kernels::dequantize_row) dequantize_row;
  decltype(Kernels::quantize) quantize;
};

// One per SIMD target, each from a file of its own that is compiled for that target. All give the same bits
// (docs/kernels.md). Only those of this architecture are linked; the caller checks that the CPU runs them.
const MatrixKernels& matrix_kernels_amx();
const MatrixKernels& matrix_kernels_avx512();
const MatrixKernels& matrix_kernels_avx2();
const MatrixKernels& matrix_kernels_neon();
const MatrixKernels& matrix_kernels_portable();

}  // namespace leanstream::kernels
