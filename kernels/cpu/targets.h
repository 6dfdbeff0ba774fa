#pragma once

#include <span>

#include "kernels/cpu/matrix_kernels.h"
#include "kernels/cpu/vector_kernels.h"

namespace leanstream::kernels {

// A SIMD target of the architecture that this library was built for.
struct Target {
  const char* name;
  bool (*runs_here)();  // whether this CPU and its operating system run the target
  const MatrixKernels& (*matrix)();
  VectorLevel vector_level;
};

// Best first. The last one runs everywhere. CMake picks the file that defines this.
std::span<const Target> targets();

}  // namespace leanstream::kernels
