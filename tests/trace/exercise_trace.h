#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace leanstream::trace {

// Reads whatever the bytes are to their end, checks what a reader promises of what it gives out, and returns the
// sentence of the error, or "" where there is none. Aborts on a broken promise.
std::string exercise_trace(std::span<const std::byte> bytes);

}  // namespace leanstream::trace
