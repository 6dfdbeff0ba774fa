#include "kernels/cpu/matrix_impl.h"
#include "kernels/cpu/simd_neon.h"

namespace leanstream::kernels {

const MatrixKernels& matrix_kernels_neon() {
  return MatrixImpl<Neon>::kKernels;
}

}  // namespace leanstream::kernels
