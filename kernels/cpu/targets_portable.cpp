#include "kernels/cpu/targets.h"

namespace leanstream::kernels {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {{"portable", [] { return true; }, matrix_kernels_portable, VectorLevel::kSse4}};
  return kTargets;
}

}  // namespace leanstream::kernels
