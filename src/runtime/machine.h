#pragma once

#include <cstdint>
#include <string>

namespace leanstream::runtime {

inline constexpr uint32_t kMaxThreads = 256;

// CPUs that this process may keep busy: its affinity mask, and no more than its cgroup's quota (rounded up). A spinning
// team larger than the quota would be throttled as a whole. At least 1, at most kMaxThreads.
uint32_t usable_cpu_count();

// The machine as the system names it: a board's model from the device tree (Jetson), else the CPU's model name.
std::string machine_name();

}  // namespace leanstream::runtime
