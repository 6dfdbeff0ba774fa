#include "tools/leanstream/convert/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gguf/reader.h"
#include "gguf/writer.h"
#include "kernels/reference/quantize.h"
#include "tools/leanstream/convert/synth.h"

namespace leanstream::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Quantize : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "leanstream-quantize-" + test.name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void make(const std::string& preset, WeightType type) const {
    ASSERT_TRUE(synth({.preset = preset, .type = type, .output = path("in.gguf")}).ok());
  }

  Result<Report> convert_to(WeightType type, const std::string& output = "out.gguf", uint32_t threads = 2) const {
    return quantize({.input = path("in.gguf"), .output = path(output), .type = type, .threads = threads});
  }

  static std::vector<float> numbers(const gguf::Model& file, const std::string& name) {
    const gguf::TensorInfo& tensor = *file.find_tensor(name);
    std::vector<std::byte> bytes(tensor.size_bytes);
    EXPECT_TRUE(file.read_tensor(tensor, 0, bytes).ok());
    std::vector<float> x(tensor.element_count());
    reference::dequantize(static_cast<WeightType>(tensor.type_id), bytes.data(), x.size(), x.data());
    return x;
  }

  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
};

TEST_F(Quantize, matrices_take_the_type_and_vectors_stay_f32) {
  make("tiny-qwen2", WeightType::kF16);
  const Result<Report> report = convert_to(WeightType::kQ8_0);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE((*report).notes.empty());
  EXPECT_EQ((*report).file_bytes, std::filesystem::file_size(path("out.gguf")));
  const Result<gguf::Model> in = gguf::Model::open(path("in.gguf")), out = gguf::Model::open(path("out.gguf"));
  ASSERT_TRUE(in.ok() && out.ok());
  ASSERT_EQ((*in).tensors().size(), (*out).tensors().size());
  for (const gguf::TensorInfo& tensor : (*out).tensors()) {
    const WeightType type = tensor.dims.size() > 1 ? WeightType::kQ8_0 : WeightType::kF32;
    EXPECT_EQ(tensor.type_id, static_cast<uint32_t>(type)) << tensor.name;
    const std::vector<float> x = numbers(*in, tensor.name), y = numbers(*out, tensor.name);
    double error = 0, power = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      error += (x[i] - y[i]) * (x[i] - y[i]);
      power += x[i] * x[i];
    }
    EXPECT_LE(std::sqrt(error / power), type == WeightType::kF32 ? 0.0 : 0.006) << tensor.name;
  }
}

TEST_F(Quantize, metadata_are_kept_but_for_the_file_type) {
  make("tiny", WeightType::kF16);
  ASSERT_TRUE(convert_to(WeightType::kQ5_1).ok());
  const Result<gguf::Model> in = gguf::Model::open(path("in.gguf")), out = gguf::Model::open(path("out.gguf"));
  ASSERT_EQ((*in).metadata().size(), (*out).metadata().size());
  for (const auto& [key, value] : (*in).metadata()) {
    if (key == "general.file_type") continue;
    EXPECT_EQ(*(*out).find(key), value) << key;
  }
  EXPECT_EQ(**(*out).find_unsigned("general.file_type"), 9u);
}

TEST_F(Quantize, the_number_of_threads_does_not_show) {
  make("tiny", WeightType::kF32);
  ASSERT_TRUE(convert_to(WeightType::kQ4_K, "one.gguf", 1).ok());
  ASSERT_TRUE(convert_to(WeightType::kQ4_K, "five.gguf", 5).ok());
  EXPECT_EQ(bytes(path("one.gguf")), bytes(path("five.gguf")));
}

TEST_F(Quantize, the_output_matrix_keeps_six_bits_tied_or_not) {
  for (const auto& [preset, output] : {std::pair{"tiny", "output.weight"}, {"tiny-qwen3", "token_embd.weight"}}) {
    make(preset, WeightType::kF16);
    const Result<Report> report = convert_to(WeightType::kQ4_0);
    ASSERT_TRUE(report.ok());
    EXPECT_THAT((*report).notes, ElementsAre(HasSubstr(std::string(output) + " is Q6_K")));
    const Result<gguf::Model> out = gguf::Model::open(path("out.gguf"));
    EXPECT_EQ((*out).find_tensor(output)->type_id, static_cast<uint32_t>(WeightType::kQ6_K));
    EXPECT_EQ((*out).find_tensor("blk.0.attn_q.weight")->type_id, static_cast<uint32_t>(WeightType::kQ4_0));
  }
}

TEST_F(Quantize, rows_that_are_not_whole_blocks_take_the_next_type_that_fits_and_that_is_said) {
  gguf::Writer writer;
  writer.set_string("general.architecture", "llama");
  writer.add_tensor("blk.0.a.weight", WeightType::kF32, {96, 2});
  writer.add_tensor("blk.0.b.weight", WeightType::kF32, {40, 2});
  ASSERT_TRUE(writer.begin(path("in.gguf")).ok());
  ASSERT_TRUE(writer.write_tensor(std::vector<std::byte>(96 * 2 * 4)).ok());
  ASSERT_TRUE(writer.write_tensor(std::vector<std::byte>(40 * 2 * 4)).ok());
  ASSERT_TRUE(writer.commit().ok());
  const Result<Report> report = convert_to(WeightType::kQ6_K);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT((*report).notes,
              ElementsAre(HasSubstr("rows of 96 elements are Q8_0"), HasSubstr("rows of 40 elements are F16")));
}

TEST_F(Quantize, does_not_replace_its_own_input) {
  make("tiny", WeightType::kF16);
  const std::string before = bytes(path("in.gguf"));
  EXPECT_EQ(convert_to(WeightType::kQ8_0, "in.gguf").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(bytes(path("in.gguf")), before);
}

TEST_F(Quantize, types_that_we_cannot_read_are_refused_by_name) {
  gguf::Writer writer;
  writer.add_tensor("t.weight", WeightType::kQ4_0, {32, 2});
  ASSERT_TRUE(writer.begin(path("in.gguf")).ok());
  ASSERT_TRUE(writer.write_tensor(std::vector<std::byte>(36)).ok());
  ASSERT_TRUE(writer.commit().ok());
  std::string file = bytes(path("in.gguf"));
  // The entry's type stands after the name and two dimensions; 20 is IQ4_NL, with blocks of Q4_0's size.
  file[file.find("t.weight") + 8 + 4 + 16] = 20;
  std::ofstream(path("in.gguf"), std::ios::binary) << file;
  const Status status = convert_to(WeightType::kQ8_0).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("'t.weight'"), HasSubstr("IQ4_NL")));
}

TEST_F(Quantize, cancelling_leaves_nothing_behind) {
  make("tiny", WeightType::kF16);
  const Status status =
      quantize(
          {.input = path("in.gguf"), .output = path("out.gguf"), .progress = [](uint64_t, uint64_t) { return false; }})
          .status();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);  // in.gguf
}

TEST_F(Quantize, the_demo_model_is_what_its_card_says) {
  const std::string original = LEANSTREAM_SHARED_DIR "/models/lean-docs-reglu-28m-f16.gguf";
  if (!std::filesystem::exists(original)) GTEST_SKIP() << original << " is not there";
  ASSERT_TRUE(quantize({.input = original, .output = path("demo.gguf"), .type = WeightType::kQ8_0}).ok());
  EXPECT_EQ(bytes(path("demo.gguf")), bytes(LEANSTREAM_SOURCE_DIR "/models/lean-docs-reglu-28m-Q8_0.gguf"));
}

TEST(WeightTypeName, is_parsed_in_either_case) {
  EXPECT_EQ(parse_weight_type("q4_0"), WeightType::kQ4_0);
  EXPECT_EQ(parse_weight_type("Q6_K"), WeightType::kQ6_K);
  EXPECT_EQ(parse_weight_type("bf16"), WeightType::kBF16);
  EXPECT_EQ(parse_weight_type("q4"), std::nullopt);
  EXPECT_EQ(parse_weight_type(""), std::nullopt);
}

}  // namespace
}  // namespace leanstream::convert
