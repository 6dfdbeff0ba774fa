#include "engine/decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/engine/loaded_model.h"
#include "tests/engine/reference_model.h"
#include "tests/model/model_file.h"

namespace leanstream::engine {
namespace {

using kernels::KvType;
using test::all_logits;
using test::LoadedModel;
using test::ModelFile;
using test::must;
using test::TinyShape;
using Logits = std::vector<std::vector<float>>;

std::vector<int32_t> some_tokens(uint32_t count, uint32_t n_vocab) {
  std::vector<int32_t> tokens;
  uint32_t state = 7;
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((state >> 16) % n_vocab));
  }
  return tokens;
}

DecoderParams params_for(uint32_t context, KvType kv_type = KvType::kF16) {
  DecoderParams params;
  params.context = context;
  params.kv_type = kv_type;
  params.max_logits = 8;
  return params;
}

Logits run(const LoadedModel& m, const std::vector<int32_t>& tokens, uint32_t batch, KvType kv_type = KvType::kF16) {
  const auto decoder = m.decoder(params_for(static_cast<uint32_t>(tokens.size()), kv_type));
  return all_logits(*decoder, m.config.n_vocab, tokens, batch);
}

testing::AssertionResult same_bits(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " positions";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
      return testing::AssertionFailure() << "position " << i << " differs";
  return testing::AssertionSuccess();
}

// The largest difference, as a fraction of the largest logit.
double relative_difference(const Logits& a, const Logits& b) {
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j) {
      difference = std::max(difference, std::fabs(double{a[i][j]} - b[i][j]));
      largest = std::max(largest, std::fabs(double{b[i][j]}));
    }
  return difference / largest;
}

TinyShape shape_of(const std::string& architecture, WeightType type = WeightType::kF32) {
  TinyShape shape;
  shape.architecture = architecture;
  shape.type = type;
  return shape;
}

// Widths that hold whole K-quant blocks, head size for a q8_0 cache.
TinyShape wide_shape(WeightType type) {
  TinyShape shape;
  shape.type = type;
  shape.n_vocab = 77;
  shape.d_model = 256;
  shape.d_ff = 512;
  shape.head_dim = 64;
  return shape;
}

// --- Against the reference ---------------------------------------------------------------------------------------

void expect_like_reference(const ModelFile& model, double tolerance) {
  const gguf::Model file = model.open();
  const LoadedModel m(file, 2);
  const std::vector<int32_t> tokens = some_tokens(40, m.config.n_vocab);
  const Logits expected = test::ReferenceModel(file, m.config).logits(tokens);
  EXPECT_LT(relative_difference(run(m, tokens, 512), expected), tolerance);
}

// Float weights: what differs is the cache in f16 (11 bits, 2^-12 relative), averaged over positions and layers.
constexpr double kF16CacheTolerance = 2e-3;

TEST(Decoder, runs_llama_like_the_reference) {
  expect_like_reference(ModelFile(TinyShape{}), kF16CacheTolerance);
}

TEST(Decoder, runs_llama_with_rope_factors_biases_and_tied_output_like_the_reference) {
  TinyShape shape;
  shape.tied = true;
  ModelFile file(shape);
  file.set_tensor("rope_freqs.weight", WeightType::kF32, {8});
  file.set_tensor("blk.0.attn_q.bias", WeightType::kF32, {64}).set_tensor("blk.1.attn_v.bias", WeightType::kF32, {32});
  expect_like_reference(file, kF16CacheTolerance);
}

TEST(Decoder, runs_partial_rotation_and_linear_scaling_like_the_reference) {
  expect_like_reference(
      ModelFile(TinyShape{}).set_number("rope.dimension_count", 8).set_float("rope.scaling.factor", 4),
      kF16CacheTolerance);
}

TEST(Decoder, runs_relu_like_the_reference) {
  expect_like_reference(ModelFile(TinyShape{}).set_text("hidden_act", "relu"), kF16CacheTolerance);
}

TEST(Decoder, runs_qwen2_like_the_reference) {
  expect_like_reference(ModelFile(shape_of("qwen2")), kF16CacheTolerance);
}

TEST(Decoder, runs_qwen3_like_the_reference) {
  TinyShape shape = shape_of("qwen3");
  shape.head_dim = 32;  // wider than d_model / n_heads
  expect_like_reference(ModelFile(shape), kF16CacheTolerance);
}

TEST(Decoder, runs_gemma3_with_a_window_shorter_than_the_text_like_the_reference) {
  TinyShape shape = shape_of("gemma3");
  shape.n_layers = 7;
  shape.tied = true;
  ModelFile file(shape);
  file.set_number("attention.sliding_window", 9).set_float("rope.freq_base", 1e6f).set_float("rope.scaling.factor", 8);
  expect_like_reference(file, kF16CacheTolerance);
}

// Quantised matrices read activations rounded to 8 bits: 1/254 of a block's largest, a few roundings deep.
TEST(Decoder, runs_quantised_weights_like_the_reference_up_to_8_bit_activations) {
  for (const WeightType type : {WeightType::kQ4_0, WeightType::kQ8_0, WeightType::kQ4_K, WeightType::kQ6_K})
    expect_like_reference(ModelFile(wide_shape(type)), 0.04);
}

// --- Exactness ---------------------------------------------------------------------------------------------------

class DecoderOfType : public testing::TestWithParam<WeightTypeTraits> {};

TEST_P(DecoderOfType, gives_the_same_bits_however_positions_are_grouped) {
  const LoadedModel m(ModelFile(wide_shape(GetParam().type)).open(), 2);
  const std::vector<int32_t> tokens = some_tokens(45, m.config.n_vocab);
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8_0}) {
    const Logits one_by_one = run(m, tokens, 1, kv_type);
    EXPECT_TRUE(same_bits(run(m, tokens, 45, kv_type), one_by_one)) << "at once";
    EXPECT_TRUE(same_bits(run(m, tokens, 7, kv_type), one_by_one)) << "by seven";
    EXPECT_TRUE(same_bits(run(m, tokens, 32, kv_type), one_by_one)) << "by thirty-two";
  }
}

TEST_P(DecoderOfType, gives_the_same_bits_for_any_thread_count) {
  const gguf::Model file = ModelFile(wide_shape(GetParam().type)).open();
  const std::vector<int32_t> tokens = some_tokens(33, 77);
  const Logits expected = run(LoadedModel(file, 1), tokens, 16);
  for (const uint32_t threads : {2u, 3u, 5u})
    EXPECT_TRUE(same_bits(run(LoadedModel(file, threads), tokens, 16), expected)) << threads << " threads";
}

// The same weights with every matrix as the file has it.
struct FileLayout {
  FileLayout(const gguf::Model& file, const model::Config& config, const kernels::Kernels& kernels) {
    for (const model::WeightSlot& slot : model::weight_slots(config, weights)) {
      const gguf::TensorInfo* info = file.find_tensor(slot.tensor);
      if (!info) continue;
      std::vector<std::byte>& bytes = storage.emplace_back(info->size_bytes);
      EXPECT_TRUE(file.read_tensor(*info, 0, bytes).ok());
      const Matrix matrix{find_weight_type(info->type_id)->type, Layout::kFile, static_cast<uint32_t>(slot.rows),
                          static_cast<uint32_t>(slot.cols), bytes.data()};
      if (slot.matrix) {
        *slot.matrix = {matrix, matrix.rows, {}};
      } else {
        std::vector<float>& values = vectors.emplace_back(matrix.cols);
        kernels.dequantize_row(matrix, 0, 1.0f, values.data());
        *slot.vector = values.data();
      }
    }
    if (!weights.output) weights.output = weights.token_embedding;
  }
  std::vector<std::vector<std::byte>> storage;
  std::vector<std::vector<float>> vectors;
  model::Weights weights;
};

TEST_P(DecoderOfType, gives_the_same_bits_from_file_layout_and_from_panels) {
  const gguf::Model file = ModelFile(wide_shape(GetParam().type)).open();
  LoadedModel m(file, 2);
  const std::vector<int32_t> tokens = some_tokens(20, m.config.n_vocab);
  const Logits expected = run(m, tokens, 20);
  FileLayout unpacked(file, m.config, *m.kernels);
  std::swap(m.weights, unpacked.weights);
  EXPECT_TRUE(same_bits(run(m, tokens, 20), expected));
  EXPECT_TRUE(same_bits(run(m, tokens, 1), expected));
}

INSTANTIATE_TEST_SUITE_P(Types, DecoderOfType, testing::ValuesIn(kWeightTypes),
                         [](const auto& type) { return type.param.name; });

TEST(Decoder, gives_the_same_bits_across_a_full_prompt_chunk) {
  TinyShape shape = shape_of("gemma3", WeightType::kQ8_0);
  shape.n_layers = 7;
  shape.head_dim = 32;
  const LoadedModel m(ModelFile(shape).set_number("attention.sliding_window", 100).open(), 2);
  const std::vector<int32_t> tokens = some_tokens(600, m.config.n_vocab);
  EXPECT_TRUE(same_bits(run(m, tokens, 512), run(m, tokens, 31)));
}

// Targets differ in the lane counts of the vector kernels, so by rounding only.
TEST(Decoder, simd_targets_agree_up_to_rounding) {
  const gguf::Model file = ModelFile(wide_shape(WeightType::kF32)).open();
  const std::vector<int32_t> tokens = some_tokens(20, 77);
  const Logits best = run(LoadedModel(file, 2), tokens, 20);
  for (const kernels::Kernels* other : kernels::all_kernels())
    EXPECT_LT(relative_difference(run(LoadedModel(file, 2, other), tokens, 20), best), 1e-3) << other->name;
}

// --- The cache and the calls -------------------------------------------------------------------------------------

TEST(Decoder, continues_after_a_cut_back_as_if_the_cut_positions_had_never_been) {
  const LoadedModel m(ModelFile(wide_shape(WeightType::kQ4_0)).open(), 2);
  const std::vector<int32_t> tokens = some_tokens(30, m.config.n_vocab);
  const auto decoder = m.decoder(params_for(64));
  const Logits expected = all_logits(*decoder, m.config.n_vocab, tokens, 30);

  decoder->truncate(12);
  EXPECT_EQ(decoder->position(), 12u);
  ASSERT_TRUE(decoder->forward(some_tokens(9, 50), nullptr, nullptr).ok());  // another continuation
  decoder->truncate(12);
  const Logits again = all_logits(*decoder, m.config.n_vocab, {tokens.begin() + 12, tokens.end()}, 5);
  EXPECT_TRUE(same_bits(again, {expected.begin() + 12, expected.end()}));
}

TEST(Decoder, projects_any_positions_of_the_last_pass_together) {
  const LoadedModel m(ModelFile(wide_shape(WeightType::kQ8_0)).open(), 2);
  const std::vector<int32_t> tokens = some_tokens(20, m.config.n_vocab);
  const Logits expected = run(m, tokens, 20);
  const auto decoder = m.decoder(params_for(20));
  ASSERT_TRUE(decoder->forward(tokens, nullptr, nullptr).ok());
  for (const uint32_t first : {12u, 0u, 5u}) {
    ASSERT_TRUE(decoder->project(first, 8, nullptr, nullptr).ok());
    for (uint32_t i = 0; i < 8; ++i)
      EXPECT_EQ(std::memcmp(decoder->logits(i), expected[first + i].data(), m.config.n_vocab * sizeof(float)), 0);
  }
}

TEST(Decoder, a_stopped_pass_appends_nothing_and_leaves_the_decoder_usable) {
  const LoadedModel m(ModelFile(wide_shape(WeightType::kQ4_0)).open(), 2);
  const std::vector<int32_t> tokens = some_tokens(30, m.config.n_vocab);
  const Logits expected = run(m, tokens, 30);
  const auto decoder = m.decoder(params_for(30));
  ASSERT_TRUE(decoder->forward({tokens.data(), 10}, nullptr, nullptr).ok());
  const Status stopped = decoder->forward(
      {tokens.data() + 10, 20}, [](void*) { return true; }, nullptr);
  EXPECT_EQ(stopped.code(), Code::kCancelled);
  EXPECT_EQ(decoder->position(), 10u);
  const Logits rest = all_logits(*decoder, m.config.n_vocab, {tokens.begin() + 10, tokens.end()}, 20);
  EXPECT_TRUE(same_bits(rest, {expected.begin() + 10, expected.end()}));
  EXPECT_EQ(decoder
                ->project(
                    0, 1, [](void*) { return true; }, nullptr)
                .code(),
            Code::kCancelled);
}

TEST(Decoder, numbers_that_are_none_pass_through) {
  LoadedModel m(ModelFile(wide_shape(WeightType::kQ4_0)).open(), 2);
  const std::vector<int32_t> tokens = some_tokens(5, m.config.n_vocab);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    std::vector<float> norm(m.config.d_model, 1.0f);
    norm[3] = bad;
    m.weights.layers[0].attn_norm = norm.data();
    m.weights.layers[1].ffn_norm = norm.data();
    for (const KvType kv_type : {KvType::kF16, KvType::kQ8_0}) {
      const Logits logits = run(m, tokens, 5, kv_type);
      if (!std::isfinite(bad)) {
        EXPECT_FALSE(std::isfinite(logits[4][0])) << "hidden: " << bad;
      }
    }
  }
}

TEST(Decoder, refuses_parameters_out_of_range) {
  const LoadedModel m(ModelFile(TinyShape{}).open(), 1);
  const auto refusal = [&](auto&& bend) {
    DecoderParams params = params_for(16);
    bend(params);
    return Decoder::create(m.config, m.weights, nullptr, *m.kernels, *m.team, params).status().code();
  };
  EXPECT_EQ(refusal([](DecoderParams& p) { p.context = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(refusal([](DecoderParams& p) { p.max_batch = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(refusal([](DecoderParams& p) { p.max_batch = kPromptChunk + 1; }), Code::kInvalidArgument);
  EXPECT_EQ(refusal([](DecoderParams& p) { p.max_logits = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(refusal([](DecoderParams& p) { p.max_logits = kMaxLogits + 1; }), Code::kInvalidArgument);
  EXPECT_EQ(refusal([](DecoderParams& p) { p.kv_type = KvType::kQ8_0; }), Code::kInvalidArgument);  // head size 16
  EXPECT_EQ(refusal([](DecoderParams&) {}), Code::kOk);
}

TEST(Decoder, activations_of_512_positions_of_a_7b_take_less_than_70_mb) {
  model::Config config;
  config.n_layers = 32;
  config.d_model = 4096;
  config.d_ff = 14336;
  config.n_vocab = 32000;
  config.n_heads = 32;
  config.n_kv_heads = 8;
  config.head_dim = 128;
  config.ropes.resize(1);
  config.ropes[0].n_rot = 128;
  DecoderParams params = params_for(4096);
  EXPECT_LT(Decoder::scratch_bytes(config, params, 2), 70'000'000u);
  config.d_ff = 11008;
  config.n_kv_heads = 32;
  EXPECT_LT(Decoder::scratch_bytes(config, params, 2), 70'000'000u);
}

}  // namespace
}  // namespace leanstream::engine
