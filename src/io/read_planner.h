#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leanstream::io {

// Bytes of a file that are wanted, with the caller's name for them.
struct Extent {
  uint32_t file = 0;
  uint32_t tag = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// One request that brings one or more extents, or a part of one: the aligned superset of them and of the gaps between.
// The last read of a file may reach past its end, by less than the alignment.
struct PlannedRead {
  uint32_t file = 0;
  uint64_t offset = 0;            // multiple of the alignment
  uint64_t size = 0;              // multiple of the alignment
  uint64_t needed = 0;            // from `offset` to the end of the last wanted byte
  uint32_t first = 0, count = 0;  // extents [first, first + count) of the input
};

struct PlanLimits {
  uint32_t alignment = 4096;          // a power of two
  uint64_t max_read_bytes = 1 << 20;  // a multiple of the alignment
  uint64_t max_gap_bytes = 0;         // merge over gaps up to this: where reading them costs less than another request
};

// Merges neighbours. Pure. `extents` are sorted by (file, offset), do not overlap, and none is empty. An extent whose
// aligned superset is larger than max_read_bytes gets reads of its own, each of at most that size. Every wanted byte is
// in a read; neighbours that share an aligned block may both read it.
std::vector<PlannedRead> plan_reads(std::span<const Extent> extents, const PlanLimits& limits);

}  // namespace leanstream::io
