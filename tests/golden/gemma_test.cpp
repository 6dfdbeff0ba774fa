// A real instruction-tuned model that nobody here made, against llama.cpp: gemma3-270m Q4_K_M. tools/fetch-gemma brings
// it; gemma3_270m.json says where the expected values come from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leanstream/leanstream.h"

namespace {

using Tokens = std::vector<leanstream_token>;

struct Destroy {
  void operator()(leanstream_runtime* p) const { leanstream_runtime_destroy(p); }
  void operator()(leanstream_model* p) const { leanstream_model_destroy(p); }
  void operator()(leanstream_session* p) const { leanstream_session_destroy(p); }
};

class Gemma : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = LEANSTREAM_SOURCE_DIR "/build/models/gemma-3-270m-q4_k_m.gguf";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << ": tools/fetch-gemma brings it";
    leanstream_error error;
    leanstream_runtime* runtime = nullptr;
    ASSERT_EQ(leanstream_runtime_create(nullptr, &runtime, &error), LEANSTREAM_OK) << error.message;
    runtime_.reset(runtime);
    leanstream_model* model = nullptr;
    ASSERT_EQ(leanstream_model_open(runtime, path.c_str(), nullptr, &model, &error), LEANSTREAM_OK) << error.message;
    model_.reset(model);
    leanstream_session_params params;
    leanstream_session_params_init(&params);
    params.context = 512;
    leanstream_session* session = nullptr;
    ASSERT_EQ(leanstream_session_create(model, &params, &session, &error), LEANSTREAM_OK) << error.message;
    session_.reset(session);
    std::ifstream file(LEANSTREAM_SOURCE_DIR "/tests/golden/gemma3_270m.json");
    expected_ = nlohmann::json::parse(file);
  }

  Tokens tokenize(const std::string& text, uint32_t flags) {
    size_t count = 0;
    leanstream_tokenize(model_.get(), text.data(), text.size(), flags, nullptr, 0, &count, nullptr);
    Tokens tokens(count);
    EXPECT_EQ(leanstream_tokenize(model_.get(), text.data(), text.size(), flags, tokens.data(), tokens.size(), &count,
                                  nullptr),
              LEANSTREAM_OK);
    return tokens;
  }

  std::unique_ptr<leanstream_runtime, Destroy> runtime_;
  std::unique_ptr<leanstream_model, Destroy> model_;
  std::unique_ptr<leanstream_session, Destroy> session_;
  nlohmann::json expected_;
};

TEST_F(Gemma, tokenizes_chats_as_llama_cpp_does) {
  // The file has no chat template: the family's turns are spelled out here.
  for (const nlohmann::json& chat : expected_["chats"]) {
    const std::string text = "<start_of_turn>user\n" + chat["user"].get<std::string>() +
                             "<end_of_turn>\n<start_of_turn>model\n";
    EXPECT_EQ(tokenize(text, LEANSTREAM_TOKENIZE_BOS | LEANSTREAM_TOKENIZE_SPECIAL), chat["prompt"].get<Tokens>());
  }
}

TEST_F(Gemma, gives_the_greedy_tokens_of_llama_cpp_up_to_margins) {
  // Both engines round activations to int8, each its own way: logits differ by a few hundredths, and where the two best
  // are closer than this, either may win.
  constexpr double kMargin = 0.15;
  leanstream_sampling_params greedy;
  leanstream_sampling_params_init(&greedy);
  greedy.temperature = 0;
  ASSERT_EQ(leanstream_session_set_sampling(session_.get(), &greedy, nullptr), LEANSTREAM_OK);

  size_t equal = 0;
  for (const nlohmann::json& chat : expected_["chats"]) {
    const Tokens prompt = chat["prompt"], tokens = chat["tokens"];
    const std::vector<double> margins = chat["margins"];
    ASSERT_EQ(leanstream_session_truncate(session_.get(), 0, nullptr), LEANSTREAM_OK);
    ASSERT_EQ(leanstream_session_prefill(session_.get(), prompt.data(), prompt.size(), nullptr), LEANSTREAM_OK);
    for (size_t i = 0; i < tokens.size(); ++i) {
      leanstream_token token = -1;
      ASSERT_EQ(leanstream_session_sample(session_.get(), 0, &token, nullptr), LEANSTREAM_OK);
      equal += token == tokens[i];
      if (margins[i] >= kMargin) {
        EXPECT_EQ(token, tokens[i]) << "token " << i << " of '" << chat["user"] << "'";
      }
      // On from the expected token: what follows a close call is then compared too.
      ASSERT_EQ(leanstream_session_decode(session_.get(), &tokens[i], 1, nullptr), LEANSTREAM_OK);
    }
  }
  EXPECT_GE(equal, 90u) << "of 96: close calls are few";
}

TEST_F(Gemma, has_the_perplexity_of_llama_cpp_within_half_a_percent) {
  const nlohmann::json& reference = expected_["perplexity"];
  const std::string path = std::string(LEANSTREAM_SHARED_DIR) + "/text/" + reference["text"].get<std::string>();
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "no " << path;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Tokens tokens = tokenize(text, LEANSTREAM_TOKENIZE_BOS);
  leanstream_model_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(leanstream_model_get_info(model_.get(), &info, nullptr), LEANSTREAM_OK);

  const size_t window = reference["window"], windows = reference["windows"];
  std::vector<double> nll(window - 1);
  double sum = 0;
  size_t count = 0;
  for (size_t w = 0; w < windows; ++w) {
    Tokens part(tokens.begin() + w * window, tokens.begin() + (w + 1) * window);
    if (info.adds_bos) part[0] = info.bos;
    ASSERT_EQ(leanstream_session_truncate(session_.get(), 0, nullptr), LEANSTREAM_OK);
    ASSERT_EQ(leanstream_session_score(session_.get(), part.data(), part.size(), nll.data(), nullptr), LEANSTREAM_OK);
    for (size_t i = window / 2; i + 1 < window; ++i, ++count) sum += nll[i];
  }
  const double perplexity = std::exp(sum / static_cast<double>(count));
  EXPECT_NEAR(perplexity / reference["value"].get<double>(), 1.0, 0.005) << perplexity;
}

}  // namespace
