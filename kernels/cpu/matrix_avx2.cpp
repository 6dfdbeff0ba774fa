#include "kernels/cpu/matrix_impl.h"
#include "kernels/cpu/simd_avx2.h"

namespace leanstream::kernels {

const MatrixKernels& matrix_kernels_avx2() {
  return MatrixImpl<Avx2>::kKernels;
}

}  // namespace leanstream::kernels
