// A session through the C interface; what it computes is tested in tests/runtime.

#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/api/api_fixture.h"

namespace leanstream::api {
namespace {

using test::expect_error;
using test::initialised;
using test::sized;

class ApiSession : public testing::Test {
 protected:
  leanstream_status prefill(size_t count) {
    std::vector<leanstream_token> tokens(count);
    for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<leanstream_token>(i * 17 % 300);
    return leanstream_session_prefill(session.get(), tokens.data(), count, &error);
  }

  const test::RuntimePtr runtime = test::create_runtime();
  const test::ModelPtr model = test::open_model(runtime, leanstream::test::tiny_model_path());
  const test::SessionPtr session = test::create_session(model, 64);
  leanstream_error error{};
};

TEST_F(ApiSession, tokens_logits_and_positions_agree) {
  ASSERT_EQ(prefill(10), LEANSTREAM_OK) << error.message;
  EXPECT_EQ(leanstream_session_position(session.get()), 10u);
  EXPECT_EQ(leanstream_session_context(session.get()), 64u);
  EXPECT_EQ(leanstream_session_tokens(session.get())[3], 51);
  EXPECT_NE(leanstream_session_logits(session.get(), 0), nullptr);
  EXPECT_EQ(leanstream_session_logits(session.get(), 1), nullptr);
  ASSERT_EQ(leanstream_session_truncate(session.get(), 4, &error), LEANSTREAM_OK);
  EXPECT_EQ(leanstream_session_position(session.get()), 4u);
  EXPECT_EQ(leanstream_session_logits(session.get(), 0), nullptr);
}

TEST_F(ApiSession, a_full_context_is_said_with_both_numbers) {
  ASSERT_EQ(prefill(60), LEANSTREAM_OK);
  expect_error(prefill(5), LEANSTREAM_ERROR_CONTEXT_FULL, error, "60");
  EXPECT_NE(std::string(error.message).find("64"), std::string::npos) << error.message;
}

TEST_F(ApiSession, cancel_works_from_a_signal_handler) {
  static leanstream_session* target = session.get();
  std::signal(SIGUSR1, [](int) { leanstream_session_cancel(target); });
  std::raise(SIGUSR1);
  std::signal(SIGUSR1, SIG_DFL);
  expect_error(prefill(5), LEANSTREAM_ERROR_CANCELLED, error, "cancelled");
  EXPECT_EQ(prefill(5), LEANSTREAM_OK);
}

TEST_F(ApiSession, abort_cancels_prefill_decode_and_score_and_ends_generate) {
  int stop = 0;
  auto params = initialised(leanstream_session_params_init);
  params.abort = [](void* user) { return *static_cast<int*>(user); };
  params.abort_user = &stop;
  leanstream_session* created = nullptr;
  ASSERT_EQ(leanstream_session_create(model.get(), &params, &created, &error), LEANSTREAM_OK);
  const test::SessionPtr abortable(created);
  const leanstream_token tokens[] = {1, 2, 3};
  double nll[2];
  ASSERT_EQ(leanstream_session_prefill(created, tokens, 3, &error), LEANSTREAM_OK);
  stop = 1;
  leanstream_generate_result result = sized<leanstream_generate_result>();
  ASSERT_EQ(leanstream_session_generate(created, nullptr, &result, &error), LEANSTREAM_OK) << error.message;
  EXPECT_EQ(result.reason, LEANSTREAM_STOP_CANCELLED);
  EXPECT_EQ(leanstream_session_prefill(created, tokens, 3, &error), LEANSTREAM_ERROR_CANCELLED);
  EXPECT_EQ(leanstream_session_decode(created, tokens, 1, &error), LEANSTREAM_ERROR_CANCELLED);
  EXPECT_EQ(leanstream_session_score(created, tokens, 3, nll, &error), LEANSTREAM_ERROR_CANCELLED);
  EXPECT_EQ(leanstream_session_position(created), 3u);
}

TEST_F(ApiSession, nan_among_the_logits_is_an_error_of_its_own) {
  const test::ModelPtr broken = test::open_model(runtime, leanstream::test::nan_model_path());
  const test::SessionPtr s = test::create_session(broken, 64);
  const leanstream_token token = 5;
  expect_error(leanstream_session_decode(s.get(), &token, 1, &error), LEANSTREAM_ERROR_NUMERIC, error, "NaN");
}

TEST_F(ApiSession, is_created_exactly_when_its_plan_fits) {
  const std::string path = testing::TempDir() + "leanstream-long-" + std::to_string(::getpid()) + ".gguf";
  leanstream::test::tiny_model().set_number("context_length", 1 << 16).write(path);
  leanstream_runtime_info info = sized<leanstream_runtime_info>();
  ASSERT_EQ(leanstream_runtime_get_info(test::create_runtime().get(), &info, &error), LEANSTREAM_OK);
  const uint64_t fixed = info.memory_held_bytes;
  auto params = initialised(leanstream_session_params_init);
  params.context = 1 << 16;  // 16 MiB of keys and values
  int created = 0, refused = 0;
  for (const uint64_t room_mib : {12, 20, 40}) {
    const test::RuntimePtr small = test::create_runtime(fixed + (room_mib << 20));
    const test::ModelPtr small_model = test::open_model(small, path);
    leanstream_plan plan = sized<leanstream_plan>();
    ASSERT_EQ(leanstream_model_plan(small_model.get(), &params, &plan, &error), LEANSTREAM_OK);
    leanstream_session* out = nullptr;
    const leanstream_status status = leanstream_session_create(small_model.get(), &params, &out, &error);
    const test::SessionPtr destroyed(out);
    EXPECT_EQ(status == LEANSTREAM_OK, plan.fits == 1) << error.message;
    if (status != LEANSTREAM_OK) expect_error(status, LEANSTREAM_ERROR_OUT_OF_BUDGET, error, "65536 positions");
    (status == LEANSTREAM_OK ? created : refused) += 1;
  }
  std::remove(path.c_str());
  EXPECT_GE(created, 1);
  EXPECT_GE(refused, 1);
}

TEST_F(ApiSession, greedy_generation_calls_back_with_text) {
  auto sampling = initialised(leanstream_sampling_params_init);
  sampling.temperature = 0;
  ASSERT_EQ(leanstream_session_set_sampling(session.get(), &sampling, &error), LEANSTREAM_OK);
  ASSERT_EQ(prefill(5), LEANSTREAM_OK);
  std::string text;
  auto params = initialised(leanstream_generate_params_init);
  params.max_tokens = 12;
  params.ignore_eos = 1;
  params.text = [](const char* piece, size_t length, void* user) {
    static_cast<std::string*>(user)->append(piece, length);
    return 1;
  };
  params.text_user = &text;
  leanstream_generate_result result = sized<leanstream_generate_result>();
  ASSERT_EQ(leanstream_session_generate(session.get(), &params, &result, &error), LEANSTREAM_OK) << error.message;
  EXPECT_EQ(result.reason, LEANSTREAM_STOP_LENGTH);
  EXPECT_EQ(result.tokens, 12u);

  std::vector<leanstream_token> tokens(leanstream_session_tokens(session.get()) + 5,
                                       leanstream_session_tokens(session.get()) + 16);
  tokens.push_back(result.waiting_token);
  std::string expected(200, '?');
  size_t needed = 0;
  ASSERT_EQ(leanstream_detokenize(model.get(), tokens.data(), tokens.size(), 0, expected.data(), expected.size(),
                                  &needed, &error),
            LEANSTREAM_OK);
  expected.resize(needed);
  EXPECT_NE(text.find(expected), std::string::npos) << text;  // detokenizing may drop a leading space
}

TEST_F(ApiSession, generate_without_a_prompt_is_refused) {
  leanstream_generate_result result = sized<leanstream_generate_result>();
  expect_error(leanstream_session_generate(session.get(), nullptr, &result, &error), LEANSTREAM_ERROR_INVALID_ARGUMENT,
               error, "no logits");
}

TEST_F(ApiSession, statistics_of_a_resident_model) {
  ASSERT_EQ(prefill(20), LEANSTREAM_OK);
  auto params = initialised(leanstream_generate_params_init);
  params.max_tokens = 5;
  params.ignore_eos = 1;
  leanstream_generate_result result = sized<leanstream_generate_result>();
  ASSERT_EQ(leanstream_session_generate(session.get(), &params, &result, &error), LEANSTREAM_OK);
  leanstream_stats stats = sized<leanstream_stats>();
  ASSERT_EQ(leanstream_session_get_stats(session.get(), &stats, &error), LEANSTREAM_OK);
  EXPECT_EQ(stats.prompt_tokens, 20u);
  EXPECT_EQ(stats.generated_tokens, 5u);
  EXPECT_EQ(stats.decoded_tokens, 4u);
  EXPECT_GT(stats.load_ms, 0);
  EXPECT_GT(stats.ttft_ms, 0);
  EXPECT_GT(stats.peak_rss_bytes, 0u);
  EXPECT_GT(stats.bytes_read, 0u);
  EXPECT_EQ(stats.bytes_read_decode, 0u);
  EXPECT_EQ(stats.cache_hit_ratio, 1.0);
  EXPECT_EQ(stats.bound_by, LEANSTREAM_BOUND_MEMORY);
  EXPECT_GT(stats.bytes_per_token, 0u);
}

}  // namespace
}  // namespace leanstream::api
