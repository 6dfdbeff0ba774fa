#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leanstream::bench {

// The sum of all 8-byte words, in four chains: what a loop that only reads memory can do. The span is a multiple of 256
// bytes long.
inline uint64_t read_all(std::span<const std::byte> memory) {
  uint64_t sum[32] = {};
  for (size_t at = 0; at < memory.size(); at += sizeof sum) {
    uint64_t words[32];
    std::memcpy(words, memory.data() + at, sizeof words);
    for (int i = 0; i < 32; ++i) sum[i] += words[i];
  }
  uint64_t total = 0;
  for (const uint64_t part : sum) total += part;
  return total;
}

}  // namespace leanstream::bench
