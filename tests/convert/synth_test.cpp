#include "tools/leanstream/convert/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "gguf/reader.h"
#include "kernels/reference/quantize.h"
#include "model/config.h"
#include "model/tokenizer.h"

namespace leanstream::convert {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kTinyPresets = {"tiny", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"};

class Synth : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "leanstream-synth-" + test.name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  gguf::Model make(const std::string& preset, WeightType type = WeightType::kQ4_0, uint64_t seed = 1,
                   const std::string& name = "m.gguf") const {
    const Result<Report> report = synth({.preset = preset, .type = type, .output = path(name), .seed = seed});
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ((*report).file_bytes, std::filesystem::file_size(path(name)));
    Result<gguf::Model> model = gguf::Model::open(path(name));
    EXPECT_TRUE(model.ok()) << model.status().message();
    return *std::move(model);
  }

  std::string bytes(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
};

TEST_F(Synth, every_small_preset_in_every_type_is_a_model_that_we_run) {
  for (const std::string& preset : kTinyPresets) {
    for (const WeightTypeTraits& type : kWeightTypes) {
      SCOPED_TRACE(preset + " " + type.name);
      const gguf::Model file = make(preset, type.type);
      const Result<model::Config> config = model::Config::from_gguf(file);
      ASSERT_TRUE(config.ok()) << config.status().message();
      EXPECT_EQ(file.find_tensor("blk.0.ffn_up.weight")->type_id, static_cast<uint32_t>(type.type));
      EXPECT_EQ(file.find_tensor("output_norm.weight")->type_id, static_cast<uint32_t>(WeightType::kF32));
    }
  }
}

TEST_F(Synth, the_gemma3_preset_has_a_window_shorter_than_its_context_and_a_global_layer) {
  const Result<model::Config> config = model::Config::from_gguf(make("tiny-gemma3"));
  ASSERT_TRUE(config.ok());
  std::set<uint32_t> windows;
  for (const model::LayerConfig& layer : (*config).layers) windows.insert(layer.window);
  EXPECT_THAT(windows, testing::ElementsAre(0u, 64u));
}

TEST_F(Synth, the_same_seed_gives_the_same_file_and_another_seed_another) {
  make("tiny", WeightType::kQ4_0, 1, "a.gguf");
  make("tiny", WeightType::kQ4_0, 1, "b.gguf");
  make("tiny", WeightType::kQ4_0, 2, "c.gguf");
  EXPECT_EQ(bytes("a.gguf"), bytes("b.gguf"));
  EXPECT_NE(bytes("a.gguf"), bytes("c.gguf"));
}

TEST_F(Synth, weights_keep_the_variance_of_what_they_multiply) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    const gguf::Model file = make("tiny", type.type);
    const gguf::TensorInfo& down = *file.find_tensor("blk.1.ffn_down.weight");
    std::vector<std::byte> data(down.size_bytes);
    ASSERT_TRUE(file.read_tensor(down, 0, data).ok());
    std::vector<float> x(down.element_count());
    reference::dequantize(type.type, data.data(), x.size(), x.data());
    double sum = 0, power = 0;
    for (float value : x) {
      sum += value;
      power += value * value;
    }
    const double cols = static_cast<double>(down.dims[0]);
    EXPECT_NEAR(power / static_cast<double>(x.size()) * cols, 1.0, 0.1) << type.name;  // Q2_K is the farthest off
    EXPECT_NEAR(sum / static_cast<double>(x.size()) * std::sqrt(cols), 0.0, 0.02) << type.name;
  }
}

TEST_F(Synth, tokens_are_distinct_and_as_many_as_the_embedding_has_rows) {
  for (const std::string& preset : kTinyPresets) {
    const gguf::Model file = make(preset);
    const gguf::Array& tokens = **file.find_array("tokenizer.ggml.tokens", gguf::ValueType::kString);
    std::set<std::string> distinct;
    for (size_t i = 0; i < tokens.size(); ++i) distinct.emplace(tokens.strings[i]);
    EXPECT_EQ(distinct.size(), tokens.size());
    EXPECT_EQ(tokens.size(), file.find_tensor("token_embd.weight")->dims[1]);
  }
}

TEST_F(Synth, vocabularies_encode_any_text_and_decode_to_it) {
  const std::string texts[] = {"Hello, the other world!", "  spaces  and\n\nlines\t", "caf\xc3\xa9 \xf0\x9f\xa6\x99 42",
                               std::string("a\0b", 3), "\xff\xfe\x80"};
  for (const std::string& preset : kTinyPresets) {
    const Result<std::unique_ptr<model::Tokenizer>> tokenizer = model::Tokenizer::from_gguf(make(preset));
    ASSERT_TRUE(tokenizer.ok()) << preset << ": " << tokenizer.status().message();
    for (const std::string& text : texts) {
      const bool is_bpe = preset.find("qwen") != std::string::npos;
      if (is_bpe && text[0] == '\xff') continue;  // how BPE spells invalid UTF-8 is the tokenizer's own affair
      const std::vector<model::Token> tokens = (**tokenizer).encode(text, {});
      EXPECT_EQ((**tokenizer).decode(tokens.data(), tokens.size(), false), text) << preset;
    }
    EXPECT_LE((**tokenizer).encode("another internation", {}).size(), 10u) << preset << ": letters do not merge in pairs";
  }
}

TEST_F(Synth, an_unknown_preset_is_refused_naming_the_known) {
  const Status status = synth({.preset = "llama9", .output = path("x.gguf")}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("'llama9'"), HasSubstr("mistral-7b"), HasSubstr("tiny")));
}

TEST_F(Synth, cancelling_leaves_nothing_behind) {
  uint64_t calls = 0;
  const Status status = synth({.preset = "tiny",
                               .output = path("x.gguf"),
                               .progress =
                                   [&](uint64_t done, uint64_t total) {
                                     EXPECT_LE(done, total);
                                     return ++calls < 5;
                                   }})
                            .status();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(calls, 5u);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace leanstream::convert
