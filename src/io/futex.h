#pragma once

#include <atomic>
#include <cstdint>

namespace leanstream::io {

// Sleeps while `word` holds `expected`, at most `timeout_us` (kNever: without limit). Returns for no reason at times:
// look at the word again.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_us);

void futex_wake(const std::atomic<uint32_t>& word, int threads);
void futex_wake_all(const std::atomic<uint32_t>& word);

// Tells the core that this is a spin loop.
void spin_pause();

}  // namespace leanstream::io
