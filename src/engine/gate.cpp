#include "engine/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace leanstream::engine {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel reads the word of a futex");

// Every outcome (woken, interrupted, word already changed) sends the caller back to look at the word.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Tells the core that this is a spin loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // stalls about as long as x86's pause; `yield` is a no-op on Arm's own cores
#endif
}

}  // namespace

void Gate::open() {
  const uint32_t next = (word_.load(std::memory_order_relaxed) | 1) + 1;
  // A sleeper sets the lowest bit before it sleeps, on the word that it then hands to the kernel: either this exchange
  // sees the bit, or the sleeper's compare-exchange fails, or the kernel finds the word changed. None is lost.
  if (word_.exchange(next, std::memory_order_acq_rel) & 1) futex_wake_all(word_);
}

void Gate::wait(uint32_t seen) {
  if (spin(seen)) return;
  uint32_t word = word_.load(std::memory_order_acquire);
  while (word >> 1 == seen) {
    if ((word & 1) == 0 && !word_.compare_exchange_weak(word, word | 1, std::memory_order_acquire)) continue;
    futex_wait(word_, word | 1);
    word = word_.load(std::memory_order_acquire);
  }
}

// Whether the gate opened during the spin.
bool Gate::spin(uint32_t seen) const {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooksPerClockRead = 16;  // a clock read costs as much as one or two pauses
  if (openings() != seen) return true;
  if (spin_us_ == 0) return false;
  const Clock::time_point give_up = Clock::now() + std::chrono::microseconds(spin_us_);
  do {
    for (int i = 0; i < kLooksPerClockRead; ++i) {
      relax();
      if (openings() != seen) return true;
    }
  } while (Clock::now() < give_up);
  return false;
}

}  // namespace leanstream::engine
