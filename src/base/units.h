#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace leanstream {

// "2G" = 2 * 2^30, "800M", "64K", "12345", "1.5G"; "60%" is of `whole_bytes` (refused where that is 0).
// Errors: kInvalidArgument with the text.
Result<uint64_t> parse_size(std::string_view text, uint64_t whole_bytes);

// "3.80 GiB", "512 MiB", "17 bytes": for people.
std::string format_bytes(uint64_t bytes);

}  // namespace leanstream
