#include "io/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "io/clock.h"

namespace leanstream::io {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel reads the word of a futex");

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_us) {
  timespec timeout{static_cast<time_t>(timeout_us / 1'000'000), static_cast<long>(timeout_us % 1'000'000 * 1000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_us == kNever ? nullptr : &timeout, nullptr, 0);
}

void futex_wake(const std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

void futex_wake_all(const std::atomic<uint32_t>& word) {
  futex_wake(word, INT_MAX);
}

void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // stalls about as long as x86's pause; `yield` is a no-op on Arm's own cores
#endif
}

}  // namespace leanstream::io
