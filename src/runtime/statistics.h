#pragma once

#include <cstdint>

namespace leanstream::runtime {

// What a session has done since it began. leanstream_stats says what each number means.
struct Statistics {
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t decoded_tokens = 0;
  double ttft_ms = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
};

}  // namespace leanstream::runtime
