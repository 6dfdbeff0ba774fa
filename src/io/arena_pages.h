#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leanstream::io {

// Makes the pages of a private mapping present, contents unchanged: O_DIRECT then pins instead of faulting, and whether
// huge pages came can be seen.
void fault_in(std::span<std::byte> memory);

// The share of the mappings overlapping `memory` that huge pages back, from /proc/self/smaps; 0 where that cannot be
// read. `memory` should be a mapping of its own.
double huge_page_share(std::span<const std::byte> memory);

}  // namespace leanstream::io
