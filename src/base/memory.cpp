#include "base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/units.h"

namespace leanstream {

Result<MappedMemory> MappedMemory::allocate(size_t size_bytes) {
  MappedMemory memory;
  if (size_bytes == 0) return memory;
  const std::optional<uint64_t> mapped_bytes = checked_add(size_bytes, kAlignment);
  if (!mapped_bytes) return out_of_budget("cannot map memory: " + std::to_string(size_bytes) + " bytes asked for");
  void* base = ::mmap(nullptr, *mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return Status(Code::kOutOfBudget,
                  "cannot map " + format_bytes(size_bytes) + " of memory: " + std::strerror(errno));
  memory.base_ = base;
  memory.mapped_bytes_ = *mapped_bytes;
  memory.data_ = reinterpret_cast<std::byte*>(align_up(reinterpret_cast<uintptr_t>(base), kAlignment));
  memory.size_bytes_ = size_bytes;
  // Fewer TLB misses, and fewer segments per read. A kernel without huge pages refuses, and only speed is lost. Small
  // mappings stay on small pages, so that what is not touched is not held.
  if (size_bytes >= kAlignment) ::madvise(memory.data_, size_bytes & ~(kAlignment - 1), MADV_HUGEPAGE);
  return memory;
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept { *this = std::move(other); }

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
}

std::byte* BumpAllocator::allocate(size_t size_bytes, size_t alignment) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(memory_.data());
  const size_t start = align_up(base + used_, alignment) - base;
  if (start > memory_.size() || size_bytes > memory_.size() - start) return nullptr;
  used_ = start + size_bytes;
  return memory_.data() + start;
}

namespace {

// The number after `key` in a file of "key   number [kB]" lines, as it stands.
std::optional<uint64_t> read_field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    std::istringstream rest(line.substr(key.size()));
    uint64_t number;
    if (rest >> number) return number;
  }
  return std::nullopt;
}

std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t number;
  if (file >> number) return number;  // "max" is no number: no limit
  return std::nullopt;
}

// The room left in one cgroup, or nothing when it has no limit. `reclaimable` names page cache that the kernel gives
// back under pressure.
std::optional<uint64_t> cgroup_room(const std::string& limit_file, const std::string& usage_file,
                                    const std::string& stat_file, std::string_view reclaimable) {
  const std::optional<uint64_t> limit = read_number(limit_file);
  const std::optional<uint64_t> usage = read_number(usage_file);
  if (!limit || !usage) return std::nullopt;
  const uint64_t cache = read_field(stat_file, reclaimable).value_or(0);
  const uint64_t held = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, held);
}

// The least room in this process's cgroup and its ancestors.
uint64_t least_cgroup_room() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",memory,") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    // In a container the path may name a folder of the host: then only the root of the mount is visible, and counts.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      const std::string at = root + (path == "/" ? "" : path);
      const std::optional<uint64_t> room =
          v2 ? cgroup_room(at + "/memory.max", at + "/memory.current", at + "/memory.stat", "inactive_file ")
             : cgroup_room(at + "/memory.limit_in_bytes", at + "/memory.usage_in_bytes", at + "/memory.stat",
                           "total_inactive_file ");
      if (room) least = std::min(least, *room);
      if (path.empty() || path == "/") break;
    }
  }
  return least;
}

}  // namespace

uint64_t process_peak_rss_bytes() { return read_field("/proc/self/status", "VmHWM:").value_or(0) * 1024; }
uint64_t process_rss_bytes() { return read_field("/proc/self/status", "VmRSS:").value_or(0) * 1024; }

uint64_t available_memory_bytes() {
  const uint64_t available = read_field("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  return std::min(available, least_cgroup_room());
}

}  // namespace leanstream
