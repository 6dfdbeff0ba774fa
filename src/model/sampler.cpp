#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace leanstream::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// e^x for x <= 0, from additions and multiplications only: the C library's differs between machines in the last bit,
// and with it, now and then, a drawn token. Relative error below 1e-15; 0 below e^-700.
double exp_of_negative(double x) {
  if (x < -700.0) return 0.0;
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // 32 bits of ln 2: exact when multiplied by an exponent
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const int exponent = static_cast<int>(x * kLog2E - 0.5);
  const double r = (x - exponent * kLn2High) - exponent * kLn2Low;  // |r| <= ln 2 / 2
  constexpr double kTaylor[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
  double sum = 0.0;
  for (const double coefficient : kTaylor) sum = sum * r + coefficient;
  return std::ldexp(sum, exponent);
}

template <typename T>
Status check_range(const char* name, T value, T low, T high) {
  if (value >= low && value <= high) return {};  // false for NaN
  return invalid_argument(std::string("setting the sampler: ") + name + ": " + std::to_string(value) + " is not in [" +
                          std::to_string(low) + ", " + std::to_string(high) + "]");
}

}  // namespace

Result<Sampler> Sampler::create(const SamplingParams& params, uint32_t n_vocab) {
  for (const Status& status : {
           check_range("temperature", params.temperature, 0.0f, 1000.0f),
           check_range("top_p", params.top_p, 0.0f, 1.0f),
           check_range("min_p", params.min_p, 0.0f, 1.0f),
           check_range("repeat_penalty", params.repeat_penalty, 0.001f, 1000.0f),
           check_range("repeat_last_n", params.repeat_last_n, -1, std::numeric_limits<int32_t>::max()),
           check_range("n_vocab", n_vocab, 1u, static_cast<uint32_t>(std::numeric_limits<Token>::max())),
       }) {
    if (!status.ok()) return status;
  }
  return Sampler(params, n_vocab);
}

Sampler::Sampler(const SamplingParams& params, uint32_t n_vocab)
    : params_(params), random_state_(params.seed), logits_(n_vocab) {
  if (params_.top_k == 0 || params_.top_k > n_vocab) params_.top_k = n_vocab;
  if (params_.repeat_penalty != 1.0f && params_.repeat_last_n != 0) penalised_at_.resize(n_vocab);
  if (params_.temperature == 0.0f) return;
  candidates_.reserve(params_.top_k);
  weights_.reserve(params_.top_k);
}

Result<Token> Sampler::sample(std::span<const float> logits, std::span<const Token> history) {
  if (Status status = copy_checked(logits); !status.ok()) return status;
  penalise_repeats(history);
  const Token best = greatest();
  max_logit_ = logits_[static_cast<size_t>(best)];
  if (max_logit_ == -kInfinity || max_logit_ == kInfinity) {
    return Status(Code::kNumeric, "sampling: all " + std::to_string(logits.size()) + " logits are infinite");
  }
  if (params_.temperature == 0.0f) return best;
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw();
}

Status Sampler::copy_checked(std::span<const float> logits) {
  if (logits.size() != logits_.size()) {
    return invalid_argument("sampling: got " + std::to_string(logits.size()) + " logits for a vocabulary of " +
                            std::to_string(logits_.size()));
  }
  bool all_good = true;
  for (size_t i = 0; i < logits.size(); ++i) {
    all_good &= logits[i] < kInfinity;  // false for NaN too
    logits_[i] = logits[i];
  }
  if (all_good) return {};
  const auto bad = std::find_if(logits.begin(), logits.end(), [](float x) { return !(x < kInfinity); });
  return {Code::kNumeric, "sampling: the logit of token " + std::to_string(bad - logits.begin()) + " is " +
                              (std::isnan(*bad) ? "not a number" : "infinite")};
}

void Sampler::penalise_repeats(std::span<const Token> history) {
  if (penalised_at_.empty()) return;
  if (params_.repeat_last_n >= 0 && history.size() > static_cast<size_t>(params_.repeat_last_n)) {
    history = history.last(static_cast<size_t>(params_.repeat_last_n));
  }
  if (++calls_ == 0) {  // wrapped around: old marks would look new
    std::fill(penalised_at_.begin(), penalised_at_.end(), 0);
    calls_ = 1;
  }
  for (const Token token : history) {
    const auto id = static_cast<size_t>(token);
    if (token < 0 || id >= logits_.size() || penalised_at_[id] == calls_) continue;
    penalised_at_[id] = calls_;
    float& logit = logits_[id];
    logit = logit > 0.0f ? logit / params_.repeat_penalty : logit * params_.repeat_penalty;
  }
}

Token Sampler::greatest() const {
  size_t best = 0;
  for (size_t i = 1; i < logits_.size(); ++i) {
    if (logits_[i] > logits_[best]) best = i;
  }
  return static_cast<Token>(best);
}

void Sampler::keep_top_k() {
  candidates_.clear();
  const size_t k = params_.top_k;
  for (size_t i = 0; i < k; ++i) candidates_.push_back({logits_[i], static_cast<Token>(i)});
  if (k == logits_.size()) return;
  // A heap of the k best so far, the worst of them on top; on ties the lower id, which came first, stays.
  std::make_heap(candidates_.begin(), candidates_.end(), better);
  float worst = candidates_.front().logit;
  for (size_t i = k; i < logits_.size(); ++i) {
    if (logits_[i] <= worst) continue;
    std::pop_heap(candidates_.begin(), candidates_.end(), better);
    candidates_.back() = {logits_[i], static_cast<Token>(i)};
    std::push_heap(candidates_.begin(), candidates_.end(), better);
    worst = candidates_.front().logit;
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), better);
}

// The fewest best candidates whose probabilities, among what top-k left, reach top_p; at least one.
void Sampler::keep_top_p() {
  if (params_.top_p >= 1.0f) return;
  const auto weight = [&](const Candidate& c) { return exp_of_negative(double{c.logit} - max_logit_); };
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += weight(candidate);
  const double wanted = params_.top_p * total;
  double reached = 0.0;
  // Sorts only as far as needed: mostly a few candidates of a whole vocabulary.
  size_t sorted = 0;
  for (size_t n = 128;; n *= 4) {
    const size_t end = std::min(n, candidates_.size());
    const auto at = [&](size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
    if (end < candidates_.size()) std::nth_element(at(sorted), at(end), candidates_.end(), better);
    std::sort(at(sorted), at(end), better);
    for (; sorted < end; ++sorted) {
      reached += weight(candidates_[sorted]);
      if (reached >= wanted) {
        candidates_.resize(sorted + 1);
        return;
      }
    }
    if (end == candidates_.size()) return;
  }
}

void Sampler::keep_min_p() {
  if (params_.min_p <= 0.0f) return;
  std::erase_if(candidates_,
                [&](const Candidate& c) { return exp_of_negative(double{c.logit} - max_logit_) < params_.min_p; });
}

Token Sampler::draw() {
  weights_.clear();
  double total = 0.0;
  for (const Candidate& candidate : candidates_) {
    weights_.push_back(exp_of_negative((double{candidate.logit} - max_logit_) / params_.temperature));
    total += weights_.back();
  }
  double left = next_uniform() * total;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    left -= weights_[i];
    if (left < 0.0) return candidates_[i].id;
  }
  return std::min_element(candidates_.begin(), candidates_.end(), better)->id;  // rounding used up the whole range
}

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, any seed is good.
double Sampler::next_uniform() {
  random_state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = random_state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

}  // namespace leanstream::model
