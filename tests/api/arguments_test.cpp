// What makes no sense is refused with a sentence: NULLs, struct sizes, enums and ranges, for every function.

#include <cmath>
#include <cstring>

#include "tests/api/api_fixture.h"

namespace leanstream::api {
namespace {

using test::expect_error;
using test::initialised;
using test::sized;

constexpr leanstream_status kInvalid = LEANSTREAM_ERROR_INVALID_ARGUMENT;

class Arguments : public testing::Test {
 protected:
  const test::RuntimePtr runtime = test::create_runtime();
  const test::ModelPtr model = test::open_model(runtime, leanstream::test::tiny_model_path());
  const test::SessionPtr session = test::create_session(model, 64);
  const std::vector<leanstream_token> tokens = {1, 260, 261};
  leanstream_error error{};
  size_t needed = 0;
};

TEST_F(Arguments, null_objects_and_outputs_are_named) {
  leanstream_runtime_info runtime_info = sized<leanstream_runtime_info>();
  leanstream_model_info model_info = sized<leanstream_model_info>();
  leanstream_plan plan = sized<leanstream_plan>();
  leanstream_generate_result result = sized<leanstream_generate_result>();
  leanstream_stats stats = sized<leanstream_stats>();
  leanstream_model* opened = nullptr;
  leanstream_session* created = nullptr;
  leanstream_token token = 0;
  leanstream_error* e = &error;
  const char* path = leanstream::test::tiny_model_path().c_str();
  const auto sampling = initialised(leanstream_sampling_params_init);
  double nll[2];

  expect_error(leanstream_runtime_create(nullptr, nullptr, e), kInvalid, error, "'out'");
  expect_error(leanstream_runtime_get_info(nullptr, &runtime_info, e), kInvalid, error, "'runtime'");
  expect_error(leanstream_runtime_get_info(runtime.get(), nullptr, e), kInvalid, error, "'info'");
  expect_error(leanstream_model_open(nullptr, path, nullptr, &opened, e), kInvalid, error, "'runtime'");
  expect_error(leanstream_model_open(runtime.get(), nullptr, nullptr, &opened, e), kInvalid, error, "'path'");
  expect_error(leanstream_model_open(runtime.get(), path, nullptr, nullptr, e), kInvalid, error, "'out'");
  expect_error(leanstream_model_get_info(nullptr, &model_info, e), kInvalid, error, "'model'");
  expect_error(leanstream_model_get_info(model.get(), nullptr, e), kInvalid, error, "'info'");
  expect_error(leanstream_model_describe(nullptr, 0, nullptr, 0, &needed, e), kInvalid, error, "'model'");
  expect_error(leanstream_model_describe(model.get(), 0, nullptr, 0, nullptr, e), kInvalid, error, "'needed'");
  expect_error(leanstream_model_plan(nullptr, nullptr, &plan, e), kInvalid, error, "'model'");
  expect_error(leanstream_model_plan(model.get(), nullptr, nullptr, e), kInvalid, error, "'plan'");
  expect_error(leanstream_tokenize(nullptr, "a", 1, 0, nullptr, 0, &needed, e), kInvalid, error, "'model'");
  expect_error(leanstream_tokenize(model.get(), "a", 1, 0, nullptr, 0, nullptr, e), kInvalid, error, "'needed'");
  expect_error(leanstream_tokenize(model.get(), nullptr, 1, 0, nullptr, 0, &needed, e), kInvalid, error, "text");
  expect_error(leanstream_detokenize(nullptr, tokens.data(), 3, 0, nullptr, 0, &needed, e), kInvalid, error, "'model'");
  expect_error(leanstream_detokenize(model.get(), nullptr, 3, 0, nullptr, 0, &needed, e), kInvalid, error, "tokens");
  expect_error(leanstream_detokenize(model.get(), tokens.data(), 3, 0, nullptr, 0, nullptr, e), kInvalid, error,
               "'needed'");
  expect_error(leanstream_chat_tokenize(nullptr, nullptr, 0, 1, nullptr, 0, &needed, e), kInvalid, error, "'model'");
  expect_error(leanstream_chat_tokenize(model.get(), nullptr, 1, 1, nullptr, 0, &needed, e), kInvalid, error,
               "messages");
  expect_error(leanstream_chat_tokenize(model.get(), nullptr, 0, 1, nullptr, 0, nullptr, e), kInvalid, error,
               "'needed'");
  expect_error(leanstream_chat_format(nullptr, nullptr, 0, 1, nullptr, 0, &needed, e), kInvalid, error, "'model'");
  expect_error(leanstream_chat_format(model.get(), nullptr, 1, 1, nullptr, 0, &needed, e), kInvalid, error, "messages");
  expect_error(leanstream_chat_format(model.get(), nullptr, 0, 1, nullptr, 0, nullptr, e), kInvalid, error, "'needed'");
  expect_error(leanstream_session_create(nullptr, nullptr, &created, e), kInvalid, error, "'model'");
  expect_error(leanstream_session_create(model.get(), nullptr, nullptr, e), kInvalid, error, "'out'");
  expect_error(leanstream_session_prefill(nullptr, tokens.data(), 3, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_prefill(session.get(), nullptr, 3, e), kInvalid, error, "'tokens'");
  expect_error(leanstream_session_decode(nullptr, tokens.data(), 1, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_decode(session.get(), nullptr, 1, e), kInvalid, error, "'tokens'");
  expect_error(leanstream_session_score(nullptr, tokens.data(), 3, nll, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_score(session.get(), nullptr, 3, nll, e), kInvalid, error, "'tokens'");
  expect_error(leanstream_session_score(session.get(), tokens.data(), 3, nullptr, e), kInvalid, error, "'nll'");
  expect_error(leanstream_session_truncate(nullptr, 0, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_set_sampling(nullptr, &sampling, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_set_sampling(session.get(), nullptr, e), kInvalid, error, "'params'");
  expect_error(leanstream_session_sample(nullptr, 0, &token, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_sample(session.get(), 0, nullptr, e), kInvalid, error, "'token'");
  expect_error(leanstream_session_generate(nullptr, nullptr, &result, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_generate(session.get(), nullptr, nullptr, e), kInvalid, error, "'result'");
  expect_error(leanstream_session_get_stats(nullptr, &stats, e), kInvalid, error, "'session'");
  expect_error(leanstream_session_get_stats(session.get(), nullptr, e), kInvalid, error, "'stats'");
  EXPECT_EQ(opened, nullptr);
  EXPECT_EQ(created, nullptr);
}

TEST_F(Arguments, null_is_fine_where_nothing_can_be_reported) {
  leanstream_runtime_destroy(nullptr);
  leanstream_model_destroy(nullptr);
  leanstream_session_destroy(nullptr);
  leanstream_session_cancel(nullptr);
  leanstream_runtime_params_init(nullptr);
  leanstream_model_params_init(nullptr);
  leanstream_session_params_init(nullptr);
  leanstream_sampling_params_init(nullptr);
  leanstream_generate_params_init(nullptr);
  EXPECT_EQ(leanstream_session_position(nullptr), 0u);
  EXPECT_EQ(leanstream_session_context(nullptr), 0u);
  EXPECT_EQ(leanstream_session_tokens(nullptr), nullptr);
  EXPECT_EQ(leanstream_session_logits(nullptr, 0), nullptr);
  EXPECT_EQ(leanstream_token_ends_generation(nullptr, 0), 0);
}

TEST_F(Arguments, errors_may_be_null_and_success_clears_them) {
  EXPECT_EQ(leanstream_session_truncate(session.get(), 7, nullptr), kInvalid);
  expect_error(leanstream_session_truncate(session.get(), 7, &error), kInvalid, error, "7");
  EXPECT_EQ(leanstream_session_truncate(session.get(), 0, &error), LEANSTREAM_OK);
  EXPECT_EQ(error.status, LEANSTREAM_OK);
  EXPECT_STREQ(error.message, "");
}

// A struct of another version of the library: smaller, larger and not set at all.
TEST_F(Arguments, unknown_struct_sizes_are_refused_with_both_sizes) {
  const auto check = [&](auto value, auto call, const char* name) {
    const std::string known = std::to_string(sizeof value);
    for (const size_t size : {size_t{0}, sizeof value - 8, sizeof value + 8}) {
      value.struct_size = size;
      expect_error(call(&value), kInvalid, error, name);
      EXPECT_NE(std::string(error.message).find(std::to_string(size)), std::string::npos) << error.message;
      EXPECT_NE(std::string(error.message).find(known), std::string::npos) << error.message;
    }
  };
  leanstream_runtime* new_runtime = nullptr;
  leanstream_model* new_model = nullptr;
  leanstream_session* new_session = nullptr;
  leanstream_plan plan = sized<leanstream_plan>();
  leanstream_generate_result result = sized<leanstream_generate_result>();
  const std::string& path = leanstream::test::tiny_model_path();
  check(
      initialised(leanstream_runtime_params_init),
      [&](auto* p) { return leanstream_runtime_create(p, &new_runtime, &error); }, "leanstream_runtime_params");
  check(
      leanstream_runtime_info{}, [&](auto* p) { return leanstream_runtime_get_info(runtime.get(), p, &error); },
      "leanstream_runtime_info");
  check(
      initialised(leanstream_model_params_init),
      [&](auto* p) { return leanstream_model_open(runtime.get(), path.c_str(), p, &new_model, &error); },
      "leanstream_model_params");
  check(
      leanstream_model_info{}, [&](auto* p) { return leanstream_model_get_info(model.get(), p, &error); },
      "leanstream_model_info");
  check(
      initialised(leanstream_session_params_init),
      [&](auto* p) { return leanstream_session_create(model.get(), p, &new_session, &error); },
      "leanstream_session_params");
  check(
      initialised(leanstream_session_params_init),
      [&](auto* p) { return leanstream_model_plan(model.get(), p, &plan, &error); }, "leanstream_session_params");
  check(
      leanstream_plan{}, [&](auto* p) { return leanstream_model_plan(model.get(), nullptr, p, &error); },
      "leanstream_plan");
  check(
      initialised(leanstream_sampling_params_init),
      [&](auto* p) { return leanstream_session_set_sampling(session.get(), p, &error); }, "leanstream_sampling_params");
  check(
      initialised(leanstream_generate_params_init),
      [&](auto* p) { return leanstream_session_generate(session.get(), p, &result, &error); },
      "leanstream_generate_params");
  check(
      leanstream_generate_result{},
      [&](auto* p) { return leanstream_session_generate(session.get(), nullptr, p, &error); },
      "leanstream_generate_result");
  check(
      leanstream_stats{}, [&](auto* p) { return leanstream_session_get_stats(session.get(), p, &error); },
      "leanstream_stats");
}

TEST_F(Arguments, defaults_are_those_of_the_header) {
  const auto model_params = initialised(leanstream_model_params_init);
  EXPECT_EQ(model_params.mode, LEANSTREAM_LOAD_FULL);
  const auto session_params = initialised(leanstream_session_params_init);
  EXPECT_EQ(session_params.kv_type, LEANSTREAM_KV_F16);
  EXPECT_EQ(session_params.max_logits, 1u);
  const auto sampling = initialised(leanstream_sampling_params_init);
  EXPECT_EQ(sampling.temperature, 0.8f);
  EXPECT_EQ(sampling.top_k, 40u);
  EXPECT_EQ(sampling.top_p, 0.95f);
  EXPECT_EQ(sampling.min_p, 0.05f);
  EXPECT_EQ(sampling.repeat_penalty, 1.0f);
  EXPECT_EQ(sampling.repeat_last_n, 64);
  EXPECT_EQ(sampling.seed, 0u);
  EXPECT_EQ(initialised(leanstream_generate_params_init).max_tokens, -1);
}

TEST_F(Arguments, numbers_that_are_no_enumerators_are_named) {
  auto model_params = initialised(leanstream_model_params_init);
  auto session_params = initialised(leanstream_session_params_init);
  const int seven = 7;
  std::memcpy(&model_params.mode, &seven, sizeof seven);
  std::memcpy(&session_params.kv_type, &seven, sizeof seven);
  leanstream_model* opened = nullptr;
  leanstream_session* created = nullptr;
  expect_error(leanstream_model_open(runtime.get(), "x", &model_params, &opened, &error), kInvalid, error, "7");
  expect_error(leanstream_session_create(model.get(), &session_params, &created, &error), kInvalid, error, "7");
}

TEST_F(Arguments, runtime_parameters_have_their_ranges) {
  leanstream_runtime* created = nullptr;
  auto params = initialised(leanstream_runtime_params_init);
  params.threads = 257;
  expect_error(leanstream_runtime_create(&params, &created, &error), kInvalid, error, "256");
  params.threads = 1;
  params.simd = "sse9";
  expect_error(leanstream_runtime_create(&params, &created, &error), LEANSTREAM_ERROR_UNSUPPORTED, error, "sse9");
  params.simd = nullptr;
  params.memory_budget_bytes = 4096;
  expect_error(leanstream_runtime_create(&params, &created, &error), LEANSTREAM_ERROR_OUT_OF_BUDGET, error, "4096");
  EXPECT_EQ(created, nullptr);
}

TEST_F(Arguments, session_parameters_have_their_ranges) {
  leanstream_session* created = nullptr;
  const auto create = [&](uint32_t context, leanstream_kv_type kv_type, uint32_t max_logits) {
    auto params = initialised(leanstream_session_params_init);
    params.context = context;
    params.kv_type = kv_type;
    params.max_logits = max_logits;
    return leanstream_session_create(model.get(), &params, &created, &error);
  };
  expect_error(create(leanstream::test::kTinyContext + 1, LEANSTREAM_KV_F16, 1), kInvalid, error, "2049");
  expect_error(create(0, LEANSTREAM_KV_F16, 0), kInvalid, error, "max_logits");
  expect_error(create(0, LEANSTREAM_KV_F16, 33), kInvalid, error, "33");
  expect_error(create(0, LEANSTREAM_KV_Q8_0, 1), LEANSTREAM_ERROR_UNSUPPORTED, error, "head_dim");
  EXPECT_EQ(created, nullptr);
}

TEST_F(Arguments, sampling_parameters_have_their_ranges) {
  const auto set = [&](auto change) {
    auto params = initialised(leanstream_sampling_params_init);
    change(params);
    return leanstream_session_set_sampling(session.get(), &params, &error);
  };
  using Params = leanstream_sampling_params;
  expect_error(set([](Params& p) { p.temperature = -1; }), kInvalid, error, "temperature");
  expect_error(set([](Params& p) { p.temperature = std::nanf(""); }), kInvalid, error, "temperature");
  expect_error(set([](Params& p) { p.top_p = 2; }), kInvalid, error, "top_p");
  expect_error(set([](Params& p) { p.min_p = -0.5f; }), kInvalid, error, "min_p");
  expect_error(set([](Params& p) { p.repeat_penalty = 0; }), kInvalid, error, "repeat_penalty");
  expect_error(set([](Params& p) { p.repeat_last_n = -2; }), kInvalid, error, "repeat_last_n");
  EXPECT_EQ(set([](Params&) {}), LEANSTREAM_OK);
}

TEST_F(Arguments, generate_parameters_have_their_ranges) {
  ASSERT_EQ(leanstream_session_prefill(session.get(), tokens.data(), tokens.size(), &error), LEANSTREAM_OK);
  leanstream_generate_result result = sized<leanstream_generate_result>();
  auto params = initialised(leanstream_generate_params_init);
  const auto generate = [&] { return leanstream_session_generate(session.get(), &params, &result, &error); };
  params.max_tokens = -2;
  expect_error(generate(), kInvalid, error, "-2");
  params.max_tokens = 1;
  params.n_stop = 1;
  expect_error(generate(), kInvalid, error, "n_stop");
  const char* empty[] = {"x", ""};
  params.stop = empty;
  params.n_stop = 2;
  expect_error(generate(), kInvalid, error, "stop string 1");
  const char* null_string[] = {nullptr};
  params.stop = null_string;
  params.n_stop = 1;
  expect_error(generate(), kInvalid, error, "stop string 0");
}

TEST_F(Arguments, token_ids_and_flags_have_their_ranges) {
  const std::vector<leanstream_token> bad = {1, leanstream::test::kTinyVocabulary};
  expect_error(leanstream_session_prefill(session.get(), bad.data(), 2, &error), kInvalid, error, "300");
  expect_error(leanstream_session_prefill(session.get(), bad.data(), 0, &error), kInvalid, error, "no tokens");
  expect_error(leanstream_session_decode(session.get(), tokens.data(), 2, &error), kInvalid, error, "max_logits 1");
  expect_error(leanstream_session_decode(session.get(), tokens.data(), 0, &error), kInvalid, error, "no tokens");
  expect_error(leanstream_detokenize(model.get(), bad.data(), 2, 0, nullptr, 0, &needed, &error), kInvalid, error,
               "300");
  expect_error(leanstream_tokenize(model.get(), "a", 1, 8, nullptr, 0, &needed, &error), kInvalid, error, "8");
  expect_error(leanstream_tokenize(model.get(), "a", (size_t{1} << 31) + 1, 0, nullptr, 0, &needed, &error), kInvalid,
               error, "2147483649");
  EXPECT_EQ(leanstream_token_ends_generation(model.get(), -1), 0);
  EXPECT_EQ(leanstream_token_ends_generation(model.get(), 300), 0);
  EXPECT_EQ(leanstream_token_ends_generation(model.get(), leanstream::test::kTinyEos), 1);
  leanstream_token token = -7;
  expect_error(leanstream_session_sample(session.get(), 0, &token, &error), kInvalid, error, "index 0");
  EXPECT_EQ(token, -7);
}

}  // namespace
}  // namespace leanstream::api
