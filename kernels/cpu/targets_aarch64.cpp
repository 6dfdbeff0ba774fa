#include <sys/auxv.h>

#include <asm/hwcap.h>

#include "kernels/cpu/targets.h"

namespace leanstream::kernels {
namespace {

bool has_dot_product() {
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

}  // namespace

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
      {"neon-dotprod", has_dot_product, matrix_kernels_neon, VectorLevel::kBest},
      {"portable", [] { return true; }, matrix_kernels_portable, VectorLevel::kSse4},
  };
  return kTargets;
}

}  // namespace leanstream::kernels
