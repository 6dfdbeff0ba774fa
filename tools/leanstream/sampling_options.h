#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "flags.h"
#include "leanstream/leanstream.h"

namespace leanstream::cli {

// The flags that steer generation.
struct GenerationOptions {
  int64_t max_tokens = -1;
  int64_t seed = -1;  // -1 = random
  double temperature = 0.8;
  int64_t top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  double repeat_penalty = 1.0;
  int64_t repeat_last_n = 64;
  bool ignore_eos = false;
  std::vector<std::string> stop;  // as typed
};

void add_generation_options(Flags& flags, GenerationOptions& options);

// Sets the session's sampler; a random seed is drawn here and said on standard error.
Status set_sampling(leanstream_session& session, const GenerationOptions& options);

// The stop strings with their escapes resolved, and what leanstream_generate_params needs of them. The pointers are
// into this object, which is why it does not move.
class StopStrings {
 public:
  StopStrings(const std::vector<std::string>& typed, bool escapes);
  StopStrings(const StopStrings&) = delete;
  StopStrings& operator=(const StopStrings&) = delete;

  void apply(leanstream_generate_params& params) const;

 private:
  std::vector<std::string> strings_;
  std::vector<const char*> pointers_;
};

}  // namespace leanstream::cli
