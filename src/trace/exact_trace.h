#pragma once

#include <cstdint>

#include "trace/trace_reader.h"

namespace leanstream::trace {

// What exact streaming demands: every piece of every layer, token after token. The caller keeps tokens * pieces to what
// memory holds.
Trace exact_trace(Header header, uint64_t tokens);

}  // namespace leanstream::trace
