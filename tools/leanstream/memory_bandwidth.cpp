#include "memory_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/memory.h"
#include "base/thread.h"
#include "kernels/cpu/kernels.h"

namespace leanstream::cli {
namespace {

// More than any last-level cache, where there is room for it.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr int kPasses = 5;

}  // namespace

double memory_read_gbps(uint32_t threads) {
  const size_t words_each = std::min(kMostBytes, available_memory_bytes() / 4) / sizeof(uint64_t) / threads;
  const size_t bytes = words_each * threads * sizeof(uint64_t);
  // Huge pages, as the weights have.
  Result<MappedMemory> memory = MappedMemory::allocate(bytes);
  if (!memory.ok() || bytes == 0) return 0;
  std::memset(memory->data(), 1, bytes);
  const kernels::Kernels& kernels = *kernels::select_kernels();
  const auto* words = reinterpret_cast<const uint64_t*>(memory->data());
  double best_seconds = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Thread> readers;
    for (uint32_t t = 0; t < threads; ++t) {
      Result<Thread> reader = Thread::start("memory-reader", [&kernels, words, words_each, t] {
        const volatile uint64_t used = kernels.sum_words(words + t * words_each, words_each);
        static_cast<void>(used);
      });
      if (!reader.ok()) return 0;
      readers.push_back(*std::move(reader));
    }
    readers.clear();  // joins
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_seconds = pass == 0 ? seconds : std::min(best_seconds, seconds);
  }
  return static_cast<double>(bytes) / best_seconds / 1e9;
}

}  // namespace leanstream::cli
