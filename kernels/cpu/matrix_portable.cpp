#include "kernels/cpu/matrix_kernels.h"

namespace leanstream::kernels {

const MatrixKernels& matrix_kernels_portable() {
  static constexpr MatrixKernels kKernels{};
  return kKernels;
}

}  // namespace leanstream::kernels
