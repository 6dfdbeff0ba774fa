#include "runtime/describe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/runtime/tiny_model.h"

namespace leanstream::runtime {
namespace {

using nlohmann::json;

gguf::Value text(std::string bytes) {
  return {gguf::ValueType::kString, std::move(bytes)};
}

TEST(Describe, tells_the_whole_head) {
  const gguf::Model file = leanstream::test::tiny_model().open();
  const json head = json::parse(describe_json(file, 0));
  EXPECT_EQ(head["version"], 3);
  EXPECT_EQ(head["alignment"], 32);
  EXPECT_EQ(head["files"].size(), 1u);
  EXPECT_EQ(head["files"][0]["bytes"], file.total_file_bytes());
  EXPECT_EQ(head["metadata"]["general.architecture"], "llama");
  EXPECT_EQ(head["metadata"]["tokenizer.ggml.tokens"].size(), leanstream::test::kTinyVocabulary);
  ASSERT_EQ(head["tensors"].size(), file.tensors().size());
  const json& tensor = head["tensors"][0];
  EXPECT_EQ(tensor["name"], file.tensors()[0].name);
  EXPECT_EQ(tensor["type"], "F32");
  EXPECT_EQ(tensor["dims"], file.tensors()[0].dims);
  EXPECT_EQ(tensor["bytes"], file.tensors()[0].size_bytes);
  EXPECT_EQ(tensor["offset"], file.tensors()[0].offset);
  EXPECT_EQ(tensor["file"], 0);
}

TEST(Describe, gives_long_arrays_by_their_length) {
  const json head = json::parse(describe_json(leanstream::test::tiny_model().open(), 8));
  EXPECT_EQ(head["metadata"]["tokenizer.ggml.tokens"],
            (json{{"array", "string"}, {"length", leanstream::test::kTinyVocabulary}}));
}

TEST(Describe, keeps_the_widths_and_signs_of_numbers) {
  leanstream::test::ModelFile model = leanstream::test::tiny_model();
  model.set("test.large", {gguf::ValueType::kUint64, ~uint64_t{0}});
  model.set("test.negative", {gguf::ValueType::kInt64, int64_t{-5}});
  model.set("test.yes", {gguf::ValueType::kBool, uint64_t{1}});
  model.set("test.half", {gguf::ValueType::kFloat64, 0.5});
  const json metadata = json::parse(describe_json(model.open(), 0))["metadata"];
  EXPECT_EQ(metadata["test.large"], ~uint64_t{0});
  EXPECT_EQ(metadata["test.negative"], -5);
  EXPECT_EQ(metadata["test.yes"], true);
  EXPECT_EQ(metadata["test.half"], 0.5);
}

TEST(Describe, replaces_bytes_that_are_no_utf8) {
  leanstream::test::ModelFile model = leanstream::test::tiny_model();
  model.set("test.bad", text("a\xFFz")).set("test.nul", text(std::string("a\0b", 3)));
  const json metadata = json::parse(describe_json(model.open(), 0))["metadata"];
  EXPECT_EQ(metadata["test.bad"], "a\xEF\xBF\xBDz");
  EXPECT_EQ(metadata["test.nul"], std::string("a\0b", 3));
}

TEST(TensorSummary, adds_up_and_names_the_type_with_most_bytes) {
  const gguf::Model file = leanstream::test::tiny_model(WeightType::kF16).open();
  const TensorSummary summary = summarise_tensors(file);
  EXPECT_EQ(summary.weight_type, "F16");
  uint64_t elements = 0, bytes = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) elements += tensor.element_count(), bytes += tensor.size_bytes;
  EXPECT_EQ(summary.parameters, elements);
  EXPECT_EQ(summary.weight_bytes, bytes);
}

}  // namespace
}  // namespace leanstream::runtime
