#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/vector_kernels.h"

namespace leanstream::kernels {

struct VectorTable {
  int64_t target = 0;                      // one of Highway's HWY_AVX2 and the like
  const char* name = nullptr;              // as Highway writes it
  const VectorKernels* kernels = nullptr;  // nullptr for a target that is not compiled
};

// Every table that this CPU runs, best first.
std::vector<VectorTable> vector_tables();

// The table of one target. vector_kernels.cpp specialises this for the targets that it is compiled for.
template <int64_t kTarget>
VectorTable vector_table() {
  return {};
}

}  // namespace leanstream::kernels
