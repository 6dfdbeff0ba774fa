#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/tokenizer.h"

namespace leanstream::model {

struct SamplingParams {
  float temperature = 0.8f;  // 0 = greedy
  uint32_t top_k = 40;       // 0 = off
  float top_p = 0.95f;       // 1 = off
  float min_p = 0.05f;       // 0 = off
  float repeat_penalty = 1.0f;
  int32_t repeat_last_n = 64;  // 0 = off, -1 = everything
  uint64_t seed = 0;
};

// Chooses the next token from logits: repeat penalty, then top-k, top-p, min-p, temperature, then a draw. At
// temperature 0 it takes the largest logit after the penalty, the lowest id on ties. Owns its random numbers; the same
// seed, logits and history give the same tokens on every machine. No allocation per token. Single-thread.
class Sampler {
 public:
  // Errors: kInvalidArgument naming the parameter and its range (NaN included).
  static Result<Sampler> create(const SamplingParams& params, uint32_t n_vocab);

  // history: all tokens before this position, the prompt's too, oldest first; the repeat penalty looks back over its
  // last repeat_last_n. Errors: kNumeric, naming the first such token, when a logit is NaN or +infinity, or when all
  // are -infinity; kInvalidArgument when logits are not n_vocab.
  Result<Token> sample(std::span<const float> logits, std::span<const Token> history);

 private:
  struct Candidate {
    float logit;
    Token id;
    uint64_t weight;  // its probability, up to a common factor
  };
  // A total order, so that no result depends on how a library sorts.
  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  Sampler(const SamplingParams& params, uint32_t n_vocab);

  Status copy_checked(std::span<const float> logits);
  void penalise_repeats(std::span<const Token> history);
  Token greatest() const;
  void keep_top_k();  // fills candidates_
  void weigh(float temperature);
  void keep_top_p();
  void keep_min_p();
  Token draw();
  void sort_by_id();
  uint64_t next_random();

  SamplingParams params_;
  uint64_t random_state_;
  std::vector<float> logits_;           // [n_vocab] of this token, after the penalty
  std::vector<uint32_t> penalised_at_;  // [n_vocab] the call that last penalised a token; empty when the penalty is off
  uint32_t calls_ = 0;
  std::vector<Candidate> candidates_;  // what may still be drawn, by id between the steps
  std::vector<uint64_t> bucket_sums_;  // scratch of keep_top_p
  float max_logit_ = 0.0f;
};

}  // namespace leanstream::model
