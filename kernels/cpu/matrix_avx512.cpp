#include "kernels/cpu/matrix_impl.h"
#include "kernels/cpu/simd_avx512.h"

namespace leanstream::kernels {

const MatrixKernels& matrix_kernels_avx512() {
  return MatrixImpl<Avx512>::kKernels;
}

}  // namespace leanstream::kernels
