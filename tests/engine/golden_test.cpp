// Real models against results of a float32 forward pass written independently of this project (golden/README.md).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/float_cache.h"
#include "tests/engine/loaded_model.h"

namespace leanstream::engine {
namespace {

using test::all_logits;
using test::LoadedModel;
using test::must;

struct GoldenFile {
  const char* golden;
  const char* model;
  double nll_tolerance;       // of each token, nats
  double mean_nll_tolerance;  // of the absolute difference, over a prompt
  double safe_margin;         // greedy tokens are compared up to the first margin, in logits, below this
};

// F16 weights are the same numbers on both sides, sums are in float or double: what is left is the cache. Keys and
// values rounded to f16 move a token's likelihood by up to 8e-3 (the reference pass with nothing but that rounding
// added does the same), 6e-4 on average.
constexpr double kF16CacheNll = 1e-2;
constexpr double kF16CacheMeanNll = 1e-3;
constexpr GoldenFile kLlama{"llama.json", "lean-docs-llama-25m-f16.gguf", kF16CacheNll, kF16CacheMeanNll, 0.05};
constexpr GoldenFile kReglu{"reglu.json", "lean-docs-reglu-28m-f16.gguf", kF16CacheNll, kF16CacheMeanNll, 0.05};
// The golden numbers are of F16 weights, the model is Q8_0: that alone moves a token by up to 0.2 nats in float
// arithmetic, and activations rounded to 8 bits do as much again.
constexpr GoldenFile kQwen2{"qwen2.json", "lean-docs-qwen2-26m-Q8_0.gguf", 0.4, 0.1, 0.3};

struct GoldenCase {
  std::string prompt;
  std::vector<int32_t> tokens;
  std::vector<double> nll;  // of tokens 1 ..
  std::vector<std::pair<uint32_t, double>> top_logits;
  std::vector<int32_t> greedy;
  std::vector<double> margin;
};

std::string model_path(const GoldenFile& file) {
  return std::string(LEANSTREAM_SHARED_DIR) + "/models/" + file.model;
}
std::string golden_path(const GoldenFile& file) {
  return std::string(LEANSTREAM_SHARED_DIR) + "/golden/" + file.golden;
}

bool present(const GoldenFile& file) {
  return std::filesystem::exists(model_path(file)) && std::filesystem::exists(golden_path(file));
}

std::vector<GoldenCase> cases_of(const GoldenFile& file) {
  std::vector<GoldenCase> cases;
  std::ifstream in(golden_path(file));
  const nlohmann::json golden = nlohmann::json::parse(in);
  for (const nlohmann::json& c : golden.at("cases"))
    cases.push_back({c.at("prompt"), c.at("tokens"), c.at("prompt_nll"), c.at("last_logits_top16"), c.at("greedy32"),
                     c.at("greedy_margin")});
  EXPECT_EQ(cases.size(), 7u);
  return cases;
}

std::unique_ptr<Decoder> decoder_of(const LoadedModel& m, const kernels::Kernels& kernels) {
  DecoderParams params;
  params.context = 512;
  params.max_logits = kMaxLogits;
  return must(Decoder::create(m.config, m.weights, nullptr, kernels, *m.team, params));
}

double nll_of(const kernels::Kernels& kernels, const std::vector<float>& logits, int32_t token) {
  return kernels.log_sum_exp(logits.data(), static_cast<uint32_t>(logits.size())) - logits[static_cast<size_t>(token)];
}

class Golden : public testing::TestWithParam<GoldenFile> {
 protected:
  void SetUp() override {
    if (!present(GetParam())) GTEST_SKIP() << "needs " << model_path(GetParam()) << " and " << golden_path(GetParam());
  }
};

TEST_P(Golden, prompt_likelihoods_and_last_logits_agree) {
  const LoadedModel m(must(gguf::Model::open(model_path(GetParam()))), 2);
  for (const GoldenCase& c : cases_of(GetParam())) {
    SCOPED_TRACE(c.prompt.substr(0, 60));
    const auto logits = all_logits(*decoder_of(m, *m.kernels), m.config.n_vocab, c.tokens, kPromptChunk, kMaxLogits);
    double mean = 0;
    for (size_t i = 0; i < c.nll.size(); ++i) {
      const double nll = nll_of(*m.kernels, logits[i], c.tokens[i + 1]);
      EXPECT_NEAR(nll, c.nll[i], GetParam().nll_tolerance) << "token " << i + 1;
      mean += std::fabs(nll - c.nll[i]) / static_cast<double>(c.nll.size());
    }
    EXPECT_LT(mean, GetParam().mean_nll_tolerance);
    for (const auto& [token, logit] : c.top_logits)
      EXPECT_NEAR(logits.back()[token], logit, 2 * GetParam().nll_tolerance);
  }
}

TEST_P(Golden, greedy_tokens_agree_up_to_the_first_close_call) {
  const LoadedModel m(must(gguf::Model::open(model_path(GetParam()))), 2);
  for (const GoldenCase& c : cases_of(GetParam())) {
    SCOPED_TRACE(c.prompt.substr(0, 60));
    const auto decoder = decoder_of(m, *m.kernels);
    std::vector<float> last = all_logits(*decoder, m.config.n_vocab, c.tokens, kPromptChunk, kMaxLogits).back();
    for (size_t i = 0; i < c.greedy.size() && c.margin[i] >= GetParam().safe_margin; ++i) {
      ASSERT_EQ(m.kernels->argmax(last.data(), m.config.n_vocab), c.greedy[i]) << "greedy token " << i;
      last = all_logits(*decoder, m.config.n_vocab, {c.greedy[i]}, 1).front();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::Values(kLlama, kReglu, kQwen2), [](const auto& file) {
  return std::string(file.param.golden, std::strlen(file.param.golden) - std::strlen(".json"));
});

// All of the decoder but its cache's rounding: F16 weights agree to float rounding (2e-5 seen).
TEST(GoldenWithFloatCache, prompt_likelihoods_of_f16_models_agree_within_2e_4) {
  for (const GoldenFile& file : {kLlama, kReglu}) {
    if (!present(file)) GTEST_SKIP() << "needs " << model_path(file) << " and " << golden_path(file);
    const LoadedModel m(must(gguf::Model::open(model_path(file))), 2);
    for (const GoldenCase& c : cases_of(file)) {
      SCOPED_TRACE(c.prompt.substr(0, 60));
      const size_t rows = 2 * size_t{m.config.n_layers} * m.config.n_kv_heads * c.tokens.size();
      const kernels::Kernels kernels = test::with_float_cache(*m.kernels, rows, m.config.head_dim);
      const auto logits = all_logits(*decoder_of(m, kernels), m.config.n_vocab, c.tokens, kPromptChunk, kMaxLogits);
      for (size_t i = 0; i < c.nll.size(); ++i)
        EXPECT_NEAR(nll_of(*m.kernels, logits[i], c.tokens[i + 1]), c.nll[i], 2e-4) << "token " << i + 1;
    }
  }
}

}  // namespace
}  // namespace leanstream::engine
