#pragma once

#include <cstdint>

namespace leanstream::cli {

// The fastest of several passes in which `threads` threads read memory that no cache holds, in GB/s. Takes a good
// tenth of a second and 256 MiB for its duration. 0 where memory or threads are refused.
double memory_read_gbps(uint32_t threads);

}  // namespace leanstream::cli
