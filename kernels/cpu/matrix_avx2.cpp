#include "kernels/cpu/matrix_kernels.h"

namespace leanstream::kernels {

const MatrixKernels& matrix_kernels_avx2() {
  static constexpr MatrixKernels kKernels{};
  return kKernels;
}

}  // namespace leanstream::kernels
