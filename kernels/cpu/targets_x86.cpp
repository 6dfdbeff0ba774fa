#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/targets.h"

namespace leanstream::kernels {
namespace {

// Clang 14 knows no name for F16C.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 29) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

// The matrix unit's registers are the process's to use once the kernel (5.16 and later) has granted them.
bool has_amx() {
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;  // leaf 7, EDX
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!has_avx512() || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kTile) == 0 || (edx & kInt8) == 0) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
      {"amx", has_amx, matrix_kernels_amx, VectorLevel::kBest},
      {"avx512vnni", has_avx512, matrix_kernels_avx512, VectorLevel::kBest},
      {"avx2", has_avx2, matrix_kernels_avx2, VectorLevel::kAvx2},
      {"portable", [] { return true; }, matrix_kernels_portable, VectorLevel::kSse4},
  };
  return kTargets;
}

}  // namespace leanstream::kernels
