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
  double decode_wait_ms = 0;       // of decode_ms, during which compute waited for the drive
  uint64_t decode_bytes_read = 0;  // from the drive meanwhile
};

}  // namespace leanstream::runtime
