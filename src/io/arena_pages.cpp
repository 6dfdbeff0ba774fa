#include "io/arena_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/checked.h"

namespace leanstream::io {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE: Linux 5.14, newer than some C libraries that we build with

}  // namespace

void fault_in(std::span<std::byte> memory) {
  if (memory.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(memory.data()) & ~(page - 1);
  const uintptr_t end = align_up(reinterpret_cast<uintptr_t>(memory.data() + memory.size()), page);
  if (::madvise(reinterpret_cast<void*>(start), end - start, kPopulateWrite) == 0) return;
  for (size_t at = 0; at < memory.size(); at += page) {
    volatile std::byte* byte = memory.data() + at;
    *byte = *byte;
  }
}

double huge_page_share(std::span<const std::byte> memory) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(memory.data()), last = first + memory.size();
  uint64_t huge_bytes = 0;
  bool inside = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t start, end;
    uint64_t kib;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) {
      inside = start < last && end > first;
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %" SCNu64, &kib) == 1) {
      huge_bytes += kib * 1024;
    }
  }
  return memory.empty() ? 0 : std::min(1.0, double(huge_bytes) / double(memory.size()));
}

}  // namespace leanstream::io
