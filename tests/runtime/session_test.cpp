#include "runtime/session.h"

#include <cmath>
#include <vector>

#include "tests/runtime/runtime_fixture.h"

namespace leanstream::runtime {
namespace {

using leanstream::test::kTinyContext;
using leanstream::test::kTinyVocabulary;
using Tokens = std::vector<Token>;

// Ids that do not repeat in step with anything.
Tokens some_tokens(size_t count, uint32_t salt = 1) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<Token>((i * i * 7 + i * 31 + salt * 101) % kTinyVocabulary);
  return tokens;
}

class SessionTest : public testing::Test {
 protected:
  std::unique_ptr<Session> session(SessionShape shape = {}, AbortHook abort = {}) {
    return test::must(Session::create(*model, shape, abort));
  }
  static std::vector<float> logits(const Session& session, uint32_t index) {
    const float* row = session.logits(index);
    if (row == nullptr) return {};
    return {row, row + kTinyVocabulary};
  }
  static void expect_ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  const std::unique_ptr<Runtime> runtime = test::create_runtime();
  const std::unique_ptr<OpenModel> model = test::open_model(*runtime, leanstream::test::tiny_model_path());
};

TEST_F(SessionTest, begins_empty_with_the_models_context) {
  const auto s = session();
  EXPECT_EQ(s->position(), 0u);
  EXPECT_EQ(s->context(), kTinyContext);
  EXPECT_EQ(s->logits(0), nullptr);
}

TEST_F(SessionTest, prefill_across_chunks_gives_what_decoding_one_by_one_gives) {
  const Tokens tokens = some_tokens(engine::kPromptChunk + 70);
  const auto whole = session(), single = session();
  expect_ok(whole->prefill(tokens));
  for (const Token& token : tokens) expect_ok(single->decode({&token, 1}));
  EXPECT_EQ(whole->position(), tokens.size());
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), whole->tokens()));
  EXPECT_EQ(logits(*whole, 0), logits(*single, 0));
  EXPECT_EQ(whole->logits(1), nullptr);
}

TEST_F(SessionTest, decoding_many_at_once_gives_logits_of_each) {
  const Tokens tokens = some_tokens(engine::kMaxLogits);
  const auto many = session({0, kernels::KvType::kF16, engine::kMaxLogits}), single = session();
  expect_ok(many->decode(tokens));
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    expect_ok(single->decode({&tokens[i], 1}));
    EXPECT_EQ(logits(*many, i), logits(*single, 0)) << i;
  }
  EXPECT_EQ(many->logits(static_cast<uint32_t>(tokens.size())), nullptr);
}

TEST_F(SessionTest, decode_takes_no_more_than_max_logits) {
  const auto s = session();
  EXPECT_EQ(s->decode(some_tokens(2)).code(), Code::kInvalidArgument);
  EXPECT_EQ(s->position(), 0u);
}

TEST_F(SessionTest, score_is_the_negative_log_likelihood_of_each_next_token) {
  const Tokens tokens = some_tokens(engine::kPromptChunk + 5);
  for (const uint32_t max_logits : {1u, 7u, 32u}) {
    const auto scored = session({0, kernels::KvType::kF16, max_logits}), single = session();
    std::vector<double> nll(tokens.size() - 1);
    expect_ok(scored->score(tokens, nll.data()));
    for (size_t i = 0; i < tokens.size(); ++i) {
      expect_ok(single->decode({&tokens[i], 1}));
      if (i + 1 == tokens.size()) break;
      double sum = 0;
      for (const float logit : logits(*single, 0)) sum += std::exp(double{logit});
      // Tolerance: float rounding inside log_sum_exp, against double here.
      EXPECT_NEAR(nll[i], std::log(sum) - double{logits(*single, 0)[tokens[i + 1]]}, 1e-5) << i;
    }
    EXPECT_EQ(logits(*scored, 0), logits(*single, 0)) << "the last position's logits follow";
  }
}

TEST_F(SessionTest, a_full_context_is_said_with_both_numbers_and_nothing_is_appended) {
  const auto s = session({64});
  expect_ok(s->prefill(some_tokens(60)));
  const Status status = s->prefill(some_tokens(5));
  EXPECT_EQ(status.code(), Code::kContextFull);
  for (const char* number : {"5 tokens", "60", "64"})
    EXPECT_NE(status.message().find(number), std::string::npos) << number << " in: " << status.message();
  EXPECT_EQ(s->position(), 60u);
  expect_ok(s->prefill(some_tokens(4)));
  EXPECT_EQ(s->position(), 64u);
}

TEST_F(SessionTest, ids_outside_the_vocabulary_are_named) {
  const auto s = session();
  for (const Token bad : {-1, static_cast<Token>(kTinyVocabulary)}) {
    const Status status = s->prefill(Tokens{1, 2, bad});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(std::to_string(bad)), std::string::npos) << status.message();
    EXPECT_EQ(s->decode(Tokens{bad}).code(), Code::kInvalidArgument);
    double nll = 0;
    EXPECT_EQ(s->score(Tokens{1, bad}, &nll).code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(s->prefill(Tokens{}).code(), Code::kInvalidArgument);
  EXPECT_EQ(s->position(), 0u);
}

TEST_F(SessionTest, truncating_and_going_on_is_as_if_nothing_had_been) {
  const Tokens tokens = some_tokens(100), other = some_tokens(50, 9);
  const auto straight = session(), cut = session();
  expect_ok(straight->prefill(tokens));
  expect_ok(cut->prefill(Tokens(tokens.begin(), tokens.begin() + 40)));
  expect_ok(cut->prefill(other));
  expect_ok(cut->truncate(40));
  EXPECT_EQ(cut->position(), 40u);
  expect_ok(cut->prefill(Tokens(tokens.begin() + 40, tokens.end())));
  EXPECT_EQ(logits(*cut, 0), logits(*straight, 0));
  EXPECT_EQ(cut->truncate(101).code(), Code::kInvalidArgument);
}

TEST_F(SessionTest, truncating_keeps_the_logits_of_the_positions_that_stay) {
  const auto s = session({0, kernels::KvType::kF16, 4});
  expect_ok(s->decode(some_tokens(4)));
  const std::vector<float> first = logits(*s, 0), second = logits(*s, 1);
  expect_ok(s->truncate(2));
  EXPECT_EQ(logits(*s, 0), first);
  EXPECT_EQ(logits(*s, 1), second);
  EXPECT_EQ(s->logits(2), nullptr);
  expect_ok(s->truncate(0));
  EXPECT_EQ(s->logits(0), nullptr);
}

TEST_F(SessionTest, cancel_before_a_call_stops_the_next_one_and_only_that) {
  const auto s = session();
  expect_ok(s->prefill(some_tokens(10)));
  s->cancel();
  EXPECT_EQ(s->prefill(some_tokens(3)).code(), Code::kCancelled);
  EXPECT_EQ(s->position(), 10u);
  EXPECT_EQ(s->logits(0), nullptr);
  expect_ok(s->prefill(some_tokens(3)));
  s->cancel();
  s->cancel();
  EXPECT_EQ(s->decode(some_tokens(1)).code(), Code::kCancelled);
  expect_ok(s->decode(some_tokens(1)));
  std::vector<double> nll(9);
  s->cancel();
  EXPECT_EQ(s->score(some_tokens(10), nll.data()).code(), Code::kCancelled);
  EXPECT_EQ(s->position(), 14u);
}

// Stops at the n-th poll, for every n until a call gets through: the cache must be untouched each time.
TEST_F(SessionTest, a_call_aborted_anywhere_leaves_the_cache_as_it_was) {
  struct Countdown {
    int left;
    static int poll(void* user) { return static_cast<Countdown*>(user)->left-- <= 0; }
  } countdown{1 << 30};
  const Tokens before = some_tokens(20), tokens = some_tokens(2 * engine::kPromptChunk + 10, 3);
  const auto s = session({}, {Countdown::poll, &countdown}), undisturbed = session();
  expect_ok(s->prefill(before));
  expect_ok(undisturbed->prefill(before));
  int aborted = 0;
  for (int allowed = 0;; allowed += 1 + allowed / 8) {
    countdown.left = allowed;
    const Status status = s->prefill(tokens);
    if (status.ok()) break;
    ++aborted;
    ASSERT_EQ(status.code(), Code::kCancelled) << status.message();
    ASSERT_EQ(s->position(), before.size());
    ASSERT_TRUE(std::equal(before.begin(), before.end(), s->tokens()));
  }
  EXPECT_GE(aborted, 3);  // the hook is polled at least once per chunk of the prompt
  expect_ok(undisturbed->prefill(tokens));
  EXPECT_EQ(logits(*s, 0), logits(*undisturbed, 0));
}

TEST_F(SessionTest, nan_among_the_logits_is_an_error_and_nothing_is_appended) {
  const auto broken = test::open_model(*runtime, leanstream::test::nan_model_path());
  const auto s = test::must(Session::create(*broken, {}, {}));
  EXPECT_EQ(s->prefill(some_tokens(3)).code(), Code::kNumeric);
  EXPECT_EQ(s->decode(some_tokens(1)).code(), Code::kNumeric);
  std::vector<double> nll(2);
  EXPECT_EQ(s->score(some_tokens(3), nll.data()).code(), Code::kNumeric);
  EXPECT_EQ(s->position(), 0u);
  EXPECT_EQ(s->logits(0), nullptr);
}

TEST_F(SessionTest, samples_the_largest_logit_at_temperature_0) {
  const auto s = session({0, kernels::KvType::kF16, 3});
  model::SamplingParams greedy;
  greedy.temperature = 0;
  expect_ok(s->set_sampling(greedy));
  expect_ok(s->decode(some_tokens(3)));
  for (uint32_t i = 0; i < 3; ++i) {
    const std::vector<float> row = logits(*s, i);
    EXPECT_EQ(test::must(s->sample(i)), std::max_element(row.begin(), row.end()) - row.begin());
  }
  EXPECT_EQ(s->sample(3).status().code(), Code::kInvalidArgument);
}

TEST_F(SessionTest, the_penalty_looks_back_from_the_row_that_is_sampled) {
  // Two copies of one token; a penalty that forbids repeats must see only what precedes each row.
  const auto s = session({0, kernels::KvType::kF16, 2});
  model::SamplingParams params;
  params.temperature = 0;
  expect_ok(s->set_sampling(params));
  expect_ok(s->decode(some_tokens(2)));
  const Token favourite = test::must(s->sample(0));
  params.repeat_penalty = 1000.0f;
  params.repeat_last_n = -1;
  expect_ok(s->truncate(0));
  expect_ok(s->set_sampling(params));
  expect_ok(s->decode(Tokens{some_tokens(2)[0], favourite}));
  EXPECT_EQ(test::must(s->sample(0)), favourite);  // not yet seen there
}

TEST_F(SessionTest, refuses_sampling_parameters_out_of_range) {
  const auto s = session();
  model::SamplingParams params;
  params.top_p = 1.5f;
  EXPECT_EQ(s->set_sampling(params).code(), Code::kInvalidArgument);
}

TEST_F(SessionTest, needs_a_model_that_was_loaded) {
  const auto head = test::open_model(*runtime, leanstream::test::tiny_model_path(), LoadMode::kVocabulary);
  EXPECT_EQ(Session::create(*head, {}, {}).status().code(), Code::kUnsupported);
}

TEST_F(SessionTest, counts_tokens_and_time) {
  const auto s = session();
  expect_ok(s->prefill(some_tokens(30)));
  expect_ok(s->decode(some_tokens(1)));
  EXPECT_EQ(s->statistics().ttft_ms, 0);
  test::must(s->sample(0));
  const Statistics& statistics = s->statistics();
  EXPECT_EQ(statistics.prompt_tokens, 30u);
  EXPECT_EQ(statistics.generated_tokens, 1u);
  EXPECT_EQ(statistics.decoded_tokens, 1u);
  EXPECT_GT(statistics.prefill_ms, 0);
  EXPECT_GT(statistics.decode_ms, 0);
  EXPECT_GE(statistics.ttft_ms, statistics.prefill_ms);
}

}  // namespace
}  // namespace leanstream::runtime
