#include "model/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace leanstream::model {
namespace {

using ::testing::HasSubstr;
using Logits = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Everything off: a draw from the softmax.
SamplingParams plain() {
  SamplingParams params;
  params.temperature = 1.0f;
  params.top_k = 0;
  params.top_p = 1.0f;
  params.min_p = 0.0f;
  return params;
}

Sampler make(const SamplingParams& params, size_t n_vocab) {
  Result<Sampler> sampler = Sampler::create(params, static_cast<uint32_t>(n_vocab));
  EXPECT_TRUE(sampler.ok()) << sampler.status().message();
  return *std::move(sampler);
}

// Logits whose softmax is `probabilities`.
Logits logits_of(const std::vector<double>& probabilities) {
  Logits logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// How often each token is drawn, of 1.
std::map<Token, double> frequencies(const SamplingParams& params, const Logits& logits,
                                    const std::vector<Token>& history = {}, int draws = 20000) {
  Sampler sampler = make(params, logits.size());
  std::map<Token, double> counts;
  for (int i = 0; i < draws; ++i) {
    const Result<Token> token = sampler.sample(logits, history);
    if (!token.ok()) ADD_FAILURE() << token.status().message();
    counts[*token] += 1.0 / draws;
  }
  return counts;
}

// 20000 draws: a standard deviation is at most 0.0035, so 0.018 is five of them.
void expect_frequencies(const std::map<Token, double>& got, const std::map<Token, double>& want) {
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [token, p] : want) {
    const auto at = got.find(token);
    ASSERT_NE(at, got.end()) << token;
    EXPECT_NEAR(at->second, p, 0.018) << token;
  }
}

TEST(Sampler, draws_by_the_softmax_when_everything_is_off) {
  expect_frequencies(frequencies(plain(), logits_of({0.1, 0.2, 0.3, 0.4})), {{0, 0.1}, {1, 0.2}, {2, 0.3}, {3, 0.4}});
}

TEST(Sampler, keeps_the_k_best) {
  SamplingParams params = plain();
  params.top_k = 2;
  expect_frequencies(frequencies(params, logits_of({0.1, 0.4, 0.2, 0.3})), {{1, 4.0 / 7}, {3, 3.0 / 7}});
  params.top_k = 100;
  EXPECT_EQ(frequencies(params, logits_of({0.1, 0.4, 0.2, 0.3})).size(), 4u);
}

TEST(Sampler, keeps_the_lower_ids_of_equal_logits) {
  SamplingParams params = plain();
  params.top_k = 2;
  expect_frequencies(frequencies(params, {0, 1, 1, 1, 0}), {{1, 0.5}, {2, 0.5}});
}

TEST(Sampler, keeps_the_fewest_that_reach_top_p) {
  SamplingParams params = plain();
  params.top_p = 0.7f;
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{2, 3.0 / 7}, {3, 4.0 / 7}});
  params.top_p = 0.71f;
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{1, 2.0 / 9}, {2, 3.0 / 9}, {3, 4.0 / 9}});
  params.top_p = 0.0f;  // the best alone
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{3, 1.0}});
}

TEST(Sampler, counts_top_p_among_what_top_k_left) {
  SamplingParams params = plain();
  params.top_k = 2;     // 0.4 and 0.3: 4/7 and 3/7 of what is left
  params.top_p = 0.5f;  // so the best is enough, which of all tokens it would not be
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{3, 1.0}});
}

TEST(Sampler, drops_what_is_less_likely_than_min_p_of_the_best) {
  SamplingParams params = plain();
  params.min_p = 0.6f;
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{2, 3.0 / 7}, {3, 4.0 / 7}});
  params.min_p = 1.0f;
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{3, 1.0}});
}

TEST(Sampler, applies_the_temperature_after_the_cuts) {
  SamplingParams params = plain();
  params.min_p = 0.6f;
  params.temperature = 0.5f;  // squares the odds
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{2, 9.0 / 25}, {3, 16.0 / 25}});
  params.temperature = 1e-6f;
  expect_frequencies(frequencies(params, logits_of({0.1, 0.2, 0.3, 0.4})), {{3, 1.0}});
}

TEST(Sampler, finds_the_nucleus_of_a_large_vocabulary) {
  Logits logits(50000, -10.0f);  // 50000 e^-10 = 2.27 against 1000 e^0 = 1000
  for (size_t i = 0; i < 1000; ++i) logits[i * 50] = 0.0f;
  SamplingParams params = plain();
  params.top_p = 0.9f;
  Sampler sampler = make(params, logits.size());
  for (int i = 0; i < 500; ++i) {
    const Token token = *sampler.sample(logits, {});
    EXPECT_EQ(token % 50, 0);
    EXPECT_LT(token, 910 * 50);  // of equal ones the lowest ids
  }
}

TEST(Sampler, takes_the_lowest_id_on_ties_at_temperature_0) {
  SamplingParams params;
  params.temperature = 0.0f;
  Sampler sampler = make(params, 5);
  EXPECT_EQ(*sampler.sample(Logits{1, 3, 2, 3, 3}, {}), 1);
  EXPECT_EQ(*sampler.sample(Logits{-0.0f, 0.0f, -1, -1, -1}, {}), 0);
  EXPECT_EQ(*sampler.sample(Logits{-kInfinity, -kInfinity, -5, -kInfinity, -kInfinity}, {}), 2);
}

TEST(Sampler, divides_positive_and_multiplies_negative_logits_of_repeats_once) {
  SamplingParams params;
  params.temperature = 0.0f;
  params.repeat_penalty = 2.0f;
  Sampler sampler = make(params, 3);
  const std::vector<Token> repeated = {0, 0, 0};
  EXPECT_EQ(*sampler.sample(Logits{3.9f, 2.0f, 0}, repeated), 1);
  EXPECT_EQ(*sampler.sample(Logits{4.1f, 2.0f, 0}, repeated), 0);  // once, however often it occurred
  EXPECT_EQ(*sampler.sample(Logits{-1.0f, -1.9f, -9}, repeated), 1);
  EXPECT_EQ(*sampler.sample(Logits{-1.0f, -2.1f, -9}, repeated), 0);
  EXPECT_EQ(*sampler.sample(Logits{3.9f, 2.0f, 0}, {}), 0);  // nothing is remembered between calls
}

TEST(Sampler, looks_back_as_far_as_it_is_told) {
  const std::vector<Token> history = {0, 1, 1};
  const auto greedy = [&](int32_t last_n) {
    SamplingParams params;
    params.temperature = 0.0f;
    params.repeat_penalty = 10.0f;
    params.repeat_last_n = last_n;
    return *make(params, 3).sample(Logits{3, 5, 1}, history);
  };
  EXPECT_EQ(greedy(0), 1);
  EXPECT_EQ(greedy(2), 0);
  EXPECT_EQ(greedy(-1), 2);
  EXPECT_EQ(greedy(100), 2);
}

TEST(Sampler, ignores_history_outside_the_vocabulary) {
  SamplingParams params = plain();
  params.repeat_penalty = 2.0f;
  EXPECT_TRUE(make(params, 2).sample(Logits{1, 2}, std::vector<Token>{-1, 2, 1 << 30}).ok());
}

TEST(Sampler, repeats_itself_for_the_same_seed_only) {
  std::mt19937 random(3);
  Logits logits(300);
  for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 200.0f;
  const auto draws = [&](uint64_t seed) {
    SamplingParams params;
    params.seed = seed;
    Sampler sampler = make(params, logits.size());
    std::vector<Token> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(*sampler.sample(logits, tokens));
    return tokens;
  };
  EXPECT_EQ(draws(1), draws(1));
  EXPECT_NE(draws(1), draws(2));
}

// From a Python twin of the sampler, with math.exp. A change of these is a change of every seeded text of a user.
TEST(Sampler, draws_the_same_tokens_on_every_machine) {
  Logits logits(64);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 37) % 64) / 16.0f;
  SamplingParams params;
  params.seed = 42;
  params.repeat_penalty = 1.1f;
  Sampler sampler = make(params, logits.size());
  std::vector<Token> tokens;
  for (int i = 0; i < 16; ++i) tokens.push_back(*sampler.sample(logits, tokens));
  EXPECT_THAT(tokens, ::testing::ElementsAre(48, 12, 19, 24, 5, 57, 17, 50, 22, 38, 15, 31, 34, 36, 43, 12));
}

TEST(Sampler, refuses_logits_that_are_no_numbers_and_names_the_token) {
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params = plain();
    params.temperature = temperature;
    Sampler sampler = make(params, 4);
    const Result<Token> nan = sampler.sample(Logits{1, 2, kNan, kNan}, {});
    EXPECT_EQ(nan.status().code(), Code::kNumeric);
    EXPECT_THAT(nan.status().message(), HasSubstr("token 2"));
    const Result<Token> infinite = sampler.sample(Logits{1, kInfinity, 2, kNan}, {});
    EXPECT_EQ(infinite.status().code(), Code::kNumeric);
    EXPECT_THAT(infinite.status().message(), HasSubstr("token 1"));
    EXPECT_EQ(sampler.sample(Logits(4, -kInfinity), {}).status().code(), Code::kNumeric);
    EXPECT_EQ(sampler.sample(Logits(3, 0.0f), {}).status().code(), Code::kInvalidArgument);
  }
}

TEST(Sampler, never_draws_a_token_of_probability_zero) {
  for (const auto& [token, p] : frequencies(plain(), {-kInfinity, 0, -kInfinity, 1, -kInfinity}, {}, 2000)) {
    EXPECT_TRUE(token == 1 || token == 3);
  }
}

TEST(Sampler, refuses_parameters_out_of_range_by_name) {
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    const Result<Sampler> sampler = Sampler::create(params, 10);
    EXPECT_EQ(sampler.status().code(), Code::kInvalidArgument);
    return sampler.status().message();
  };
  EXPECT_THAT(message([](auto& p) { p.temperature = -0.1f; }), HasSubstr("temperature"));
  EXPECT_THAT(message([](auto& p) { p.temperature = kNan; }), HasSubstr("temperature"));
  EXPECT_THAT(message([](auto& p) { p.temperature = kInfinity; }), HasSubstr("temperature"));
  EXPECT_THAT(message([](auto& p) { p.top_p = 1.1f; }), HasSubstr("top_p"));
  EXPECT_THAT(message([](auto& p) { p.top_p = kNan; }), HasSubstr("top_p"));
  EXPECT_THAT(message([](auto& p) { p.min_p = -1.0f; }), HasSubstr("min_p"));
  EXPECT_THAT(message([](auto& p) { p.repeat_penalty = 0.0f; }), HasSubstr("repeat_penalty"));
  EXPECT_THAT(message([](auto& p) { p.repeat_last_n = -2; }), HasSubstr("repeat_last_n"));
  EXPECT_FALSE(Sampler::create(SamplingParams{}, 0).ok());
}

}  // namespace
}  // namespace leanstream::model
