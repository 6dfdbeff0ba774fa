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
// random numbers and its window of past tokens; the same seed, logits and history give the same tokens on every
// machine. No allocation per token after the first. Single-thread.
class Sampler {
 public:
  // Errors: kInvalidArgument naming the parameter and its range (NaN included).
  static Result<Sampler> create(const SamplingParams& params, uint32_t n_vocab);

  // Errors: kNumeric when a logit is NaN or +infinity.
  Result<Token> sample(std::span<const float> logits);

  // Tells the sampler what was appended (prompt tokens too): the repeat penalty looks back over it.
  void accept(Token token);

 private:
  Sampler(const SamplingParams& params, uint32_t n_vocab);
  // ... the implementer's choice
};

}  // namespace leanstream::model
