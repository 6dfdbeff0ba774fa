#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leanstream::engine {

// Atomics that different threads write live this far apart: two 64-byte lines, since x86 fetches lines in pairs.
inline constexpr size_t kCacheLineBytes = 128;

// A count of openings that threads wait on: each opening lets everybody through who waits for the one before to pass.
// Waiting spins for a bounded time, then sleeps on a futex; opening is one atomic exchange unless somebody sleeps.
// Thread-safe; openings must not overlap.
class Gate {
 public:
  static constexpr uint32_t kCountMask = UINT32_MAX >> 1;  // openings are counted modulo 2^31

  // The spin covers the usual gap between two barriers without a system call. 0 sleeps at once: right where the thread
  // waited for may need this CPU.
  explicit Gate(uint32_t spin_us = 0) : spin_us_(spin_us) {}

  uint32_t openings() const { return word_.load(std::memory_order_acquire) >> 1; }

  // What was written before open() is visible after the wait() that it ended.
  void open();

  // Returns once openings() differs from `seen`, which the caller got from openings().
  void wait(uint32_t seen);

 private:
  bool spin(uint32_t seen) const;

  // 2 * openings, plus 1 while somebody sleeps. open() releases what wait() and openings() acquire.
  alignas(kCacheLineBytes) std::atomic<uint32_t> word_{0};
  const uint32_t spin_us_;
};

}  // namespace leanstream::engine
