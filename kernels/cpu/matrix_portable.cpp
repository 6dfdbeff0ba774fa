#include "kernels/cpu/matrix_impl.h"
#include "kernels/cpu/simd_portable.h"

namespace leanstream::kernels {

const MatrixKernels& matrix_kernels_portable() {
  return MatrixImpl<Portable>::kKernels;
}

}  // namespace leanstream::kernels
