#include "runtime/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

namespace leanstream::runtime {
namespace {

uint32_t affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // The call fails on machines with more CPUs than cpu_set_t has bits, and those have enough.
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return kMaxThreads;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

// CPUs' worth of time per period in this process's own cgroup (version 2), or nothing when it has no quota.
std::optional<double> cgroup_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota_us = 0, period_us = 0;
  if (!(file >> quota_us >> period_us) || period_us <= 0) return std::nullopt;  // "max" is no number
  return quota_us / period_us;
}

}  // namespace

uint32_t usable_cpu_count() {
  uint32_t count = affinity_count();
  if (const std::optional<double> quota = cgroup_quota())
    count = std::min(count, static_cast<uint32_t>(std::ceil(std::min(*quota, double{kMaxThreads}))));
  return std::clamp(count, uint32_t{1}, kMaxThreads);
}

std::string machine_name() {
  std::string name;
  std::getline(std::ifstream("/proc/device-tree/model"), name, '\0');
  if (!name.empty()) return name;

  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? std::string(system.machine) + " CPU" : "CPU";
}

}  // namespace leanstream::runtime
