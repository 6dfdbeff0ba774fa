#include "kernels/cpu/targets.h"

namespace leanstream::kernels {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

}  // namespace

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
      {"avx512vnni", has_avx512, matrix_kernels_avx512, VectorLevel::kBest},
      {"avx2", has_avx2, matrix_kernels_avx2, VectorLevel::kAvx2},
      {"portable", [] { return true; }, matrix_kernels_portable, VectorLevel::kSse4},
  };
  return kTargets;
}

}  // namespace leanstream::kernels
