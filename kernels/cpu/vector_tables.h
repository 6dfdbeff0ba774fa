#pragma once

#include "kernels/cpu/vector_kernels.h"

namespace leanstream::kernels {

// The table of one Highway target (a HWY_AVX2 or the like). vector_kernels.cpp specialises it for every target that it
// is compiled for.
template <int64_t kTarget>
const VectorKernels* vector_table() {
  return nullptr;
}

}  // namespace leanstream::kernels
