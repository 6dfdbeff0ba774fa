#include "io/read_planner.h"

#include <algorithm>

#include "base/checked.h"

namespace leanstream::io {

std::vector<PlannedRead> plan_reads(std::span<const Extent> extents, const PlanLimits& limits) {
  std::vector<PlannedRead> reads;
  for (uint32_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    const uint64_t end = extent.offset + extent.size;
    if (!reads.empty() && reads.back().file == extent.file) {
      PlannedRead& last = reads.back();
      const uint64_t size = align_up(end - last.offset, limits.alignment);
      const uint64_t last_end = last.offset + last.needed;
      if (size <= limits.max_read_bytes && extent.offset - last_end <= limits.max_gap_bytes) {
        last.size = size;
        last.needed = end - last.offset;
        ++last.count;
        continue;
      }
    }
    const uint64_t aligned_start = extent.offset & ~uint64_t{limits.alignment - 1};
    for (uint64_t start = aligned_start; start < end; start += limits.max_read_bytes) {
      const uint64_t needed = std::min(end - start, limits.max_read_bytes);
      reads.push_back({extent.file, start, align_up(needed, limits.alignment), needed, i, 1});
    }
  }
  return reads;
}

}  // namespace leanstream::io
