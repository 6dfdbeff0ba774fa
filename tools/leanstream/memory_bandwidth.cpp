#include "memory_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace leanstream::cli {
namespace {

constexpr size_t kBytes = size_t{256} << 20;
constexpr int kPasses = 8;

// Independent sums, so that the loads and not the additions are what takes time.
uint64_t sum_of(const uint64_t* words, size_t count) {
  constexpr size_t kLanes = 32;
  uint64_t lanes[kLanes] = {};
  for (size_t i = 0; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double memory_read_gbps(uint32_t threads) {
  const size_t words_each = kBytes / sizeof(uint64_t) / threads;
  const std::vector<uint64_t> memory(words_each * threads, 1);
  double best_seconds = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> readers;
    for (uint32_t t = 0; t < threads; ++t)
      readers.emplace_back([&memory, words_each, t] {
        const volatile uint64_t used = sum_of(memory.data() + t * words_each, words_each);
        static_cast<void>(used);
      });
    for (std::thread& reader : readers) reader.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_seconds = pass == 0 ? seconds : std::min(best_seconds, seconds);
  }
  return static_cast<double>(kBytes) / best_seconds / 1e9;
}

}  // namespace leanstream::cli
