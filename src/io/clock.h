#pragma once

#include <chrono>
#include <cstdint>

namespace leanstream::io {

// The pool's clock: microseconds, monotonic.
inline uint64_t now_us() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since_start).count());
}

// "Never", as a point in time or a timeout.
inline constexpr uint64_t kNever = UINT64_MAX;

}  // namespace leanstream::io
