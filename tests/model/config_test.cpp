#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/model/model_file.h"

namespace leanstream::model {
namespace {

using test::ModelFile;
using test::TinyShape;
using testing::HasSubstr;

TinyShape shape_of(const std::string& architecture) {
  TinyShape shape;
  shape.architecture = architecture;
  return shape;
}

Config config_of(const ModelFile& file) {
  Result<Config> config = Config::from_gguf(file.open());
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? std::move(*config) : Config{};
}

Status refusal_of(const ModelFile& file) {
  const Result<Config> config = Config::from_gguf(file.open());
  EXPECT_FALSE(config.ok());
  return config.status();
}

void expect_refused(const ModelFile& file, Code code, const std::string& words) {
  const Status status = refusal_of(file);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(words));
}

TEST(Config, reads_the_shape_of_a_llama_file) {
  const Config config = config_of(ModelFile(TinyShape{}));
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_EQ(config.name, "tiny");
  EXPECT_EQ(config.n_layers, 2u);
  EXPECT_EQ(config.d_model, 64u);
  EXPECT_EQ(config.d_ff, 96u);
  EXPECT_EQ(config.n_vocab, 40u);
  EXPECT_EQ(config.n_heads, 4u);
  EXPECT_EQ(config.n_kv_heads, 2u);
  EXPECT_EQ(config.head_dim, 16u);
  EXPECT_EQ(config.context_length, 512u);
  EXPECT_FLOAT_EQ(config.rms_epsilon, 1e-5f);
  EXPECT_FLOAT_EQ(config.attention_scale, 0.25f);
  EXPECT_EQ(config.embedding_scale, 1.0f);
  EXPECT_EQ(config.activation, Activation::kSilu);
  ASSERT_EQ(config.ropes.size(), 1u);
  EXPECT_FALSE(config.ropes[0].halves);
  EXPECT_EQ(config.ropes[0].n_rot, 16u);
  EXPECT_EQ(config.ropes[0].freq_base, 10000.0);
}

TEST(Config, takes_head_size_from_the_width_when_no_key_names_it) {
  ModelFile file{TinyShape{}};
  file.drop_key("attention.key_length").drop_key("attention.value_length");
  EXPECT_EQ(config_of(file).head_dim, 16u);
}

TEST(Config, without_head_count_kv_every_head_has_its_own_keys) {
  TinyShape shape;
  shape.n_kv_heads = shape.n_heads;
  ModelFile file(shape);
  file.drop_key("attention.head_count_kv");
  EXPECT_EQ(config_of(file).n_kv_heads, 4u);
}

TEST(Config, qwen_architectures_rotate_halves) {
  EXPECT_TRUE(config_of(ModelFile(shape_of("qwen2"))).ropes[0].halves);
  EXPECT_TRUE(config_of(ModelFile(shape_of("qwen3"))).ropes[0].halves);
}

TEST(Config, hidden_act_chooses_relu_or_silu_and_refuses_others_by_name) {
  ModelFile file{TinyShape{}};
  EXPECT_EQ(config_of(file.set_text("hidden_act", "relu")).activation, Activation::kRelu);
  EXPECT_EQ(config_of(file.set_text("hidden_act", "silu")).activation, Activation::kSilu);
  expect_refused(file.set_text("hidden_act", "gelu"), Code::kUnsupported, "'gelu'");
}

TEST(Config, gemma3_windows_all_layers_but_every_sixth) {
  TinyShape shape = shape_of("gemma3");
  shape.n_layers = 13;
  ModelFile file(shape);
  file.set_number("attention.sliding_window", 128).set_float("rope.freq_base", 1e6f);
  file.set_text("rope.scaling.type", "linear").set_float("rope.scaling.factor", 8.0f);
  const Config config = config_of(file);
  for (uint32_t i = 0; i < 13; ++i) {
    const bool global = i == 5 || i == 11;
    EXPECT_EQ(config.layers[i].window, global ? 0u : 128u) << i;
    EXPECT_EQ(config.layers[i].rope, global ? 0u : 1u) << i;
  }
  ASSERT_EQ(config.ropes.size(), 2u);
  EXPECT_EQ(config.ropes[0].freq_base, 1e6);
  EXPECT_EQ(config.ropes[0].freq_scale, 1.0 / 8.0);
  EXPECT_EQ(config.ropes[1].freq_base, 10000.0);
  EXPECT_EQ(config.ropes[1].freq_scale, 1.0);
  EXPECT_EQ(config.activation, Activation::kGeluTanh);
  EXPECT_FLOAT_EQ(config.embedding_scale, 8.0f);
  EXPECT_FLOAT_EQ(config.attention_scale, 0.25f);
}

TEST(Config, gemma3_takes_the_window_pattern_from_a_key) {
  TinyShape shape = shape_of("gemma3");
  shape.n_layers = 4;
  ModelFile file(shape);
  file.set_number("attention.sliding_window", 128).set_number("attention.sliding_window_pattern", 2);
  Config config = config_of(file);
  EXPECT_EQ(config.layers[0].window, 128u);
  EXPECT_EQ(config.layers[1].window, 0u);

  gguf::Array flags;
  flags.type = gguf::ValueType::kBool;
  flags.unsigneds = {0, 1, 1, 0};
  file.set("gemma3.attention.sliding_window_pattern", {gguf::ValueType::kArray, flags});
  config = config_of(file);
  EXPECT_EQ(config.layers[0].window, 0u);
  EXPECT_EQ(config.layers[1].window, 128u);
}

TEST(Config, the_62_layer_gemma3_scales_attention_by_its_width_per_head) {
  TinyShape shape = shape_of("gemma3");
  shape.n_layers = 62;
  shape.head_dim = 32;
  EXPECT_FLOAT_EQ(config_of(ModelFile(shape)).attention_scale, 0.25f);  // 64 / 4 heads, not 32
}

TEST(Config, reads_yarn_scaling) {
  ModelFile file(shape_of("qwen2"));
  file.set_text("rope.scaling.type", "yarn").set_float("rope.scaling.factor", 4.0f);
  file.set_number("rope.scaling.original_context_length", 32768);
  const Rope rope = config_of(file).ropes[0];
  EXPECT_EQ(rope.freq_scale, 0.25);
  EXPECT_EQ(rope.yarn_ext_factor, 1.0);
  EXPECT_EQ(rope.yarn_original_context, 32768u);
  EXPECT_EQ(rope.yarn_beta_fast, 32.0);
  EXPECT_EQ(rope.yarn_beta_slow, 1.0);
  EXPECT_NEAR(rope.magnitude, 1.0 + 0.1 * std::log(4.0), 1e-12);
}

TEST(Config, scaling_type_none_ignores_the_factor) {
  ModelFile file{TinyShape{}};
  file.set_text("rope.scaling.type", "none").set_float("rope.scaling.factor", 4.0f);
  EXPECT_EQ(config_of(file).ropes[0].freq_scale, 1.0);
}

TEST(Config, refuses_an_unknown_architecture_before_anything_else) {
  ModelFile file(shape_of("mamba"));
  file.drop_tensor("token_embd.weight").drop_key("block_count");
  expect_refused(file, Code::kUnsupported, "architecture 'mamba' is not supported");
}

TEST(Config, refuses_mixtures_of_experts_by_name) {
  ModelFile file{TinyShape{}};
  file.set_number("expert_count", 8).drop_tensor("blk.0.ffn_gate.weight");
  expect_refused(file, Code::kUnsupported, "mixture of experts");
  EXPECT_EQ(config_of(ModelFile(TinyShape{}).set_number("expert_count", 0)).n_layers, 2u);
}

TEST(Config, refuses_features_it_does_not_compute) {
  expect_refused(ModelFile(shape_of("gemma3")).set_float("final_logit_softcapping", 30.0f), Code::kUnsupported,
                 "gemma3.final_logit_softcapping");
  expect_refused(ModelFile(TinyShape{}).set("llama.attention.causal", {gguf::ValueType::kBool, uint64_t{0}}),
                 Code::kUnsupported, "causal");
  expect_refused(ModelFile(TinyShape{}).set_text("rope.scaling.type", "longrope"), Code::kUnsupported, "'longrope'");
  expect_refused(ModelFile(TinyShape{}).set_number("attention.value_length", 8), Code::kUnsupported,
                 "attention.value_length");
}

TEST(Config, per_layer_arrays_are_taken_when_all_values_are_equal) {
  ModelFile file{TinyShape{}};
  file.set_numbers("attention.head_count_kv", {2, 2}).set_numbers("feed_forward_length", {96, 96});
  const Config config = config_of(file);
  EXPECT_EQ(config.n_kv_heads, 2u);
  EXPECT_EQ(config.d_ff, 96u);
  expect_refused(file.set_numbers("attention.head_count_kv", {2, 4}), Code::kUnsupported, "attention.head_count_kv");
  expect_refused(file.set_numbers("attention.head_count_kv", {}), Code::kMalformed, "empty");
  expect_refused(file.set_numbers("attention.head_count_kv", {-2, -2}), Code::kMalformed, "negative");
}

TEST(Config, refuses_sizes_out_of_range_naming_the_key) {
  struct Case {
    const char* key;
    uint32_t value;
  };
  // block_count 513 over tensors for 2 layers names the first tensor that is not there (see below).
  for (const Case& c :
       {Case{"block_count", 0}, Case{"block_count", 1u << 31}, Case{"embedding_length", 0},
        Case{"feed_forward_length", 0}, Case{"context_length", 0}, Case{"attention.head_count", 0},
        Case{"attention.head_count", 1u << 31}, Case{"attention.head_count_kv", 0}, Case{"attention.head_count_kv", 3},
        Case{"attention.key_length", 0}, Case{"attention.key_length", 1u << 20}, Case{"rope.dimension_count", 18},
        Case{"rope.dimension_count", 7}, Case{"rope.dimension_count", 0}})
    expect_refused(ModelFile(TinyShape{}).set_number(c.key, c.value), Code::kMalformed, std::string("llama.") + c.key);
}

TEST(Config, refuses_constants_out_of_range_naming_the_key) {
  struct Case {
    const char* key;
    float value;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Case& c : {Case{"attention.layer_norm_rms_epsilon", 0.0f}, Case{"attention.layer_norm_rms_epsilon", kNan},
                        Case{"attention.layer_norm_rms_epsilon", -1.0f}, Case{"rope.freq_base", 0.0f},
                        Case{"rope.freq_base", kInfinity}, Case{"rope.freq_base", kNan},
                        Case{"rope.scaling.factor", -2.0f}, Case{"rope.scaling.factor", kInfinity}})
    expect_refused(ModelFile(TinyShape{}).set_float(c.key, c.value), Code::kMalformed, std::string("llama.") + c.key);
}

TEST(Config, refuses_an_odd_head_size) {
  TinyShape shape;
  shape.head_dim = 15;
  expect_refused(ModelFile(shape), Code::kMalformed, "head size is 15");
}

TEST(Config, names_missing_keys_and_keys_of_another_type) {
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "context_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"})
    expect_refused(ModelFile(TinyShape{}).drop_key(key), Code::kMalformed,
                   std::string("'llama.") + key + "' is missing");
  expect_refused(ModelFile(TinyShape{}).set_text("block_count", "two"), Code::kMalformed, "llama.block_count");
}

TEST(Config, more_layers_than_tensors_names_the_first_missing_tensor) {
  expect_refused(ModelFile(TinyShape{}).set_number("block_count", 513), Code::kMalformed,
                 "tensor 'blk.2.attn_norm.weight' is missing");
}

TEST(Config, names_missing_tensors) {
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.1.ffn_down.weight"})
    expect_refused(ModelFile(TinyShape{}).drop_tensor(name), Code::kMalformed,
                   std::string("tensor '") + name + "' is missing");
  expect_refused(ModelFile(shape_of("qwen2")).drop_tensor("blk.0.attn_k.bias"), Code::kMalformed, "blk.0.attn_k.bias");
  expect_refused(ModelFile(shape_of("qwen3")).drop_tensor("blk.0.attn_q_norm.weight"), Code::kMalformed,
                 "blk.0.attn_q_norm.weight");
}

TEST(Config, a_vocabulary_size_that_contradicts_the_embedding_is_refused_with_both_numbers) {
  EXPECT_EQ(config_of(ModelFile(TinyShape{}).set_number("vocab_size", 40)).n_vocab, 40u);
  expect_refused(ModelFile(TinyShape{}).set_number("vocab_size", 41), Code::kMalformed, "'llama.vocab_size' is 41");
  expect_refused(ModelFile(TinyShape{}).set_number("vocab_size", 41), Code::kMalformed, "40 rows");
  expect_refused(ModelFile(TinyShape{}).set_text("vocab_size", "forty"), Code::kMalformed, "vocab_size");
}

TEST(Config, a_list_of_tokens_that_contradicts_the_embedding_is_refused_with_both_numbers) {
  gguf::Array tokens;
  tokens.type = gguf::ValueType::kString;
  for (int i = 0; i < 39; ++i) tokens.strings.push_back("t" + std::to_string(i));
  ModelFile file{TinyShape{}};
  expect_refused(file.set("tokenizer.ggml.tokens", {gguf::ValueType::kArray, tokens}), Code::kMalformed,
                 "'tokenizer.ggml.tokens' has 39 tokens, which contradicts the 40 rows");
  tokens.strings.push_back("the fortieth");
  EXPECT_EQ(config_of(file.set("tokenizer.ggml.tokens", {gguf::ValueType::kArray, tokens})).n_vocab, 40u);
}

TEST(Config, a_file_without_output_weight_is_tied) {
  EXPECT_EQ(config_of(ModelFile(TinyShape{}).drop_tensor("output.weight")).n_vocab, 40u);
}

TEST(Config, a_tensor_of_another_shape_is_refused_with_both_shapes) {
  const Status status =
      refusal_of(ModelFile(TinyShape{}).set_tensor("blk.1.attn_k.weight", WeightType::kF32, {64, 48}));
  EXPECT_EQ(status.code(), Code::kMalformed);
  EXPECT_THAT(status.message(), HasSubstr("blk.1.attn_k.weight"));
  EXPECT_THAT(status.message(), HasSubstr("[64, 48]"));
  EXPECT_THAT(status.message(), HasSubstr("[64, 32]"));
  expect_refused(ModelFile(TinyShape{}).set_tensor("blk.0.attn_norm.weight", WeightType::kF32, {63}), Code::kMalformed,
                 "[63]");
  expect_refused(ModelFile(TinyShape{}).set_tensor("blk.0.attn_q.weight", WeightType::kF32, {4096}), Code::kMalformed,
                 "[4096]");
}

TEST(Config, refuses_a_tensor_that_the_architecture_does_not_know) {
  expect_refused(ModelFile(TinyShape{}).set_tensor("blk.0.attn_output.bias", WeightType::kF32, {64}),
                 Code::kUnsupported, "'blk.0.attn_output.bias'");
}

TEST(Config, biases_and_rope_factors_are_allowed_in_llama_files) {
  ModelFile file{TinyShape{}};
  file.set_tensor("rope_freqs.weight", WeightType::kF32, {8}).set_tensor("blk.0.attn_q.bias", WeightType::kF32, {64});
  EXPECT_EQ(config_of(file).n_layers, 2u);
}

}  // namespace
}  // namespace leanstream::model
