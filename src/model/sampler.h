#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/tokenizer.h"

namespace leanstream::model {

struct SamplingParams {
  float temperature = 0.8f;   // 0 = greedy
  uint32_t top_k = 40;        // 0 = off
  float top_p = 0.95f;        // 1 = off
  float min_p = 0.05f;        // 0 = off
  float repeat_penalty = 1.0f;
  int32_t repeat_last_n = 64; // 0 = off, -1 = everything
  uint64_t seed = 0;
};

// Chooses the next token from logits: repeat penalty, then top-k, top-p, min-p, temperature, then a draw. Owns its
// random numbers; the same seed, logits and history give the same tokens on every machine. No allocation per token
// after the first. Single-thread.
class Sampler {
 public:
  // Errors: kInvalidArgument naming the parameter and its range (NaN included).
  static Result<Sampler> create(const SamplingParams& params, uint32_t n_vocab);

  // history: all tokens before this position, the prompt's too, oldest first; the repeat penalty looks back over its
  // last repeat_last_n. Errors: kNumeric when a logit is NaN or +infinity.
  Result<Token> sample(std::span<const float> logits, std::span<const Token> history);

 private:
  Sampler(const SamplingParams& params, uint32_t n_vocab);
  // ... the implementer's choice
};

}  // namespace leanstream::model
