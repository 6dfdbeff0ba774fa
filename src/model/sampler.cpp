#include "model/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace leanstream::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kMaxVocabulary = uint32_t{1} << 19;  // largest in use: 2^18

// Two numbers side by side: a vector register of every 64-bit machine. Each operation is that of plain doubles.
using Doubles = double __attribute__((vector_size(16)));
using Longs = int64_t __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(8)));

// e^x for -700 <= x <= 0, from additions and multiplications only: the C library's differs between machines in the last
// bit, and with it, now and then, a drawn token. Relative error below 1e-15.
Doubles exp_of_negative(Doubles x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // 32 bits of ln 2: exact when multiplied by an exponent
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const Ints exponent = __builtin_convertvector(x * kLog2E - 0.5, Ints);
  const Doubles n = __builtin_convertvector(exponent, Doubles);
  const Doubles r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln 2 / 2
  constexpr double kTaylor[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
  Doubles sum = {0.0, 0.0};
  for (const double coefficient : kTaylor) sum = sum * r + coefficient;
  const Longs power_of_two = (__builtin_convertvector(exponent, Longs) + 1023) << 52;
  return sum * std::bit_cast<Doubles>(power_of_two);  // exactly
}

// Probabilities are kept as fixed-point numbers, up to a common factor: sums are exact, so no result depends on their
// order. The greatest logit has this weight, of which kMaxVocabulary fit 64 bits; one e^-30.5 below it weighs nothing.
constexpr double kUnitWeight = 0x1.0p44;
constexpr double kWeightless = -30.5;

Longs weights_of(Doubles logits_below_max) {
  Doubles x = logits_below_max;
  for (int i = 0; i < 2; ++i) x[i] = std::max(x[i], kWeightless);
  return __builtin_convertvector(exp_of_negative(x) * kUnitWeight, Longs);
}

// Ascends as logits descend; equal for equal logits, of which 0 and -0 are two.
uint32_t rank_of(float logit) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);  // -0 becomes 0
  return bits >> 31 ? bits : ~bits & 0x7fffffff;
}
// Ranks are looked at this many bits at a time, from the front: sign, exponent and two bits more, then the rest.
constexpr int kBucketBits = 11;
constexpr int kShifts[] = {21, 10, 0};  // what is below the bits looked at

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
           check_range("n_vocab", n_vocab, 1u, kMaxVocabulary),
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
  bucket_sums_.resize(size_t{1} << kBucketBits);
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
  const bool weights_matter = params_.top_p < 1.0f || params_.min_p > 0.0f || params_.temperature == 1.0f;
  if (weights_matter) weigh(1.0f);
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
  for (size_t i = 0; i < k; ++i) candidates_.push_back({logits_[i], static_cast<Token>(i), 0});
  if (k < logits_.size()) {
    // A heap of the k best so far, the worst of them on top; on ties the lower id, which came first, stays.
    std::make_heap(candidates_.begin(), candidates_.end(), better);
    float worst = candidates_.front().logit;
    for (size_t i = k; i < logits_.size(); ++i) {
      if (logits_[i] <= worst) continue;
      std::pop_heap(candidates_.begin(), candidates_.end(), better);
      candidates_.back() = {logits_[i], static_cast<Token>(i), 0};
      std::push_heap(candidates_.begin(), candidates_.end(), better);
      worst = candidates_.front().logit;
    }
    sort_by_id();
  }
}

void Sampler::weigh(float temperature) {
  const auto below_max = [&](const Candidate& c) { return (double{c.logit} - max_logit_) / temperature; };
  const size_t n = candidates_.size();
  for (size_t i = 0; i < n; i += 2) {
    Candidate& one = candidates_[i];
    Candidate& other = candidates_[std::min(i + 1, n - 1)];
    const Doubles below = {below_max(one), below_max(other)};
    const Longs weights = weights_of(below);
    one.weight = static_cast<uint64_t>(weights[0]);
    other.weight = static_cast<uint64_t>(weights[1]);
  }
}

// The fewest best candidates whose probabilities, among what top-k left, reach top_p; at least one. A radix selection:
// the logit of the last one to keep is found a few bits at a time, from sums over the candidates whose logits agree
// with it so far; those that turn out worse go at once. Nothing is sorted.
void Sampler::keep_top_p() {
  if (params_.top_p >= 1.0f) return;
  const uint64_t total = std::accumulate(candidates_.begin(), candidates_.end(), uint64_t{0},
                                         [](uint64_t s, const Candidate& c) { return s + c.weight; });
  // At least the best one; its weight is not 0.
  const auto wanted =
      std::max<uint64_t>(static_cast<uint64_t>(std::ceil(params_.top_p * static_cast<double>(total))), 1);
  uint64_t kept = 0;    // weight of the candidates that are better than all that agree with `prefix`
  uint64_t prefix = 0;  // leading bits of the last one's rank
  int known_from = 32;  // bits of ranks from here on are in `prefix`
  for (const int shift : kShifts) {
    const int bits = std::exchange(known_from, shift) - shift;
    std::fill(bucket_sums_.begin(), bucket_sums_.end(), 0);
    for (const Candidate& c : candidates_) {
      const uint64_t rank = rank_of(c.logit);
      if (rank >> (shift + bits) == prefix) bucket_sums_[rank >> shift & ((1u << bits) - 1)] += c.weight;
    }
    uint32_t bucket = 0;
    while (kept + bucket_sums_[bucket] < wanted) kept += bucket_sums_[bucket++];
    prefix = prefix << bits | bucket;
    std::erase_if(candidates_, [&](const Candidate& c) { return rank_of(c.logit) >> shift > prefix; });
  }
  // Of those with just the last one's logit, which weigh the same, the lowest ids, as many as it takes.
  std::erase_if(candidates_, [&](const Candidate& c) {
    if (rank_of(c.logit) != prefix) return false;
    const bool enough = kept >= wanted;
    kept += c.weight;
    return enough;
  });
}

void Sampler::keep_min_p() {
  if (params_.min_p <= 0.0f) return;
  const double least = params_.min_p * kUnitWeight;
  std::erase_if(candidates_, [&](const Candidate& c) { return static_cast<double>(c.weight) < least; });
}

void Sampler::sort_by_id() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

Token Sampler::draw() {
  if (params_.temperature != 1.0f) weigh(params_.temperature);
  uint64_t total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  // A number in [0, total), by the high half of a product; total is not 0, since the greatest logit is a candidate.
  auto left = static_cast<uint64_t>(static_cast<unsigned __int128>(next_random()) * total >> 64);
  auto drawn = candidates_.begin();
  for (; left >= drawn->weight; ++drawn) left -= drawn->weight;
  return drawn->id;
}

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, any seed is good.
uint64_t Sampler::next_random() {
  random_state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = random_state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace leanstream::model
