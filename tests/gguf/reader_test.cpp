#include "gguf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "gguf/tensor_type.h"
#include "kernels/abi/weight_type.h"
#include "tests/gguf/file_bytes.h"

namespace leanstream::gguf {
namespace {

using testing::HasSubstr;

constexpr uint32_t kF32 = 0;

// One F32 tensor of 2 x 3 after one string key.
FileBytes small_file(uint32_t version = 3) {
  FileBytes file(1, 1, version);
  file.key("general.architecture", ValueType::kString).string("llama");
  file.tensor("t", {2, 3}, kF32, 0).pad();
  for (float x : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) file.number(x);
  return file;
}

TEST(Reader, opens_versions_2_and_3) {
  for (uint32_t version : {2u, 3u}) {
    const Result<Model> model = small_file(version).open();
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model).version(), version);
    EXPECT_EQ((*model).alignment(), 32u);
    EXPECT_EQ((*model).total_file_bytes(), small_file().bytes().size());
  }
}

TEST(Reader, finds_and_reads_tensors) {
  const Result<Model> model = small_file().open();
  ASSERT_TRUE(model.ok());
  EXPECT_EQ((*model).find_tensor("u"), nullptr);
  const TensorInfo* tensor = (*model).find_tensor("t");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->element_count(), 6u);
  EXPECT_EQ(tensor->size_bytes, 24u);
  float two[2];
  ASSERT_TRUE((*model).read_tensor(*tensor, 8, std::as_writable_bytes(std::span(two))).ok());
  EXPECT_EQ(two[0], 3.f);
  EXPECT_EQ(two[1], 4.f);
  EXPECT_FALSE((*model).read_tensor(*tensor, 20, std::as_writable_bytes(std::span(two))).ok());
  EXPECT_FALSE((*model).read_tensor(*tensor, UINT64_MAX, std::as_writable_bytes(std::span(two))).ok());
}

TEST(Reader, reads_every_metadata_type) {
  FileBytes file(0, 14);
  file.key<uint8_t>("u8", ValueType::kUint8, 200).key<int8_t>("i8", ValueType::kInt8, -7);
  file.key<uint16_t>("u16", ValueType::kUint16, 60000).key<int16_t>("i16", ValueType::kInt16, -30000);
  file.key<uint32_t>("u32", ValueType::kUint32, 4000000000u).key<int32_t>("i32", ValueType::kInt32, -2000000000);
  file.key<uint64_t>("u64", ValueType::kUint64, UINT64_MAX).key<int64_t>("i64", ValueType::kInt64, INT64_MIN);
  file.key("f32", ValueType::kFloat32, 1.5f).key("f64", ValueType::kFloat64, 0.1);
  file.key<uint8_t>("yes", ValueType::kBool, 1);
  file.key("s", ValueType::kString).string(std::string_view("a\0b", 3));
  file.key("words", ValueType::kArray).array(ValueType::kString, 3).string("x").string("").string("yz");
  file.key("nested", ValueType::kArray).array(ValueType::kArray, 2);
  file.array(ValueType::kInt16, 2).number<int16_t>(-1).number<int16_t>(2).array(ValueType::kBool, 1).raw("\1");
  const Result<Model> opened = file.open();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Model& model = *opened;

  EXPECT_EQ(**model.find_unsigned("u8"), 200u);
  EXPECT_EQ(std::get<int64_t>(model.find("i8")->value), -7);
  EXPECT_EQ(**model.find_unsigned("u16"), 60000u);
  EXPECT_EQ(**model.find_float("i16"), -30000.0);
  EXPECT_EQ(**model.find_unsigned("u32"), 4000000000u);
  EXPECT_EQ(**model.find_float("i32"), -2e9);
  EXPECT_EQ(**model.find_unsigned("u64"), UINT64_MAX);
  EXPECT_EQ(std::get<int64_t>(model.find("i64")->value), INT64_MIN);
  EXPECT_EQ(**model.find_float("f32"), 1.5);
  EXPECT_EQ(**model.find_float("f64"), 0.1);
  EXPECT_TRUE(**model.find_bool("yes"));
  EXPECT_EQ(**model.find_string("s"), std::string("a\0b", 3));
  const Array* words = *model.find_array("words", ValueType::kString);
  ASSERT_EQ(words->size(), 3u);
  EXPECT_EQ(words->strings[0], "x");
  EXPECT_EQ(words->strings[1], "");
  EXPECT_EQ(words->strings[2], "yz");
  const Array* nested = *model.find_array("nested", ValueType::kArray);
  EXPECT_THAT(nested->arrays[0].signeds, testing::ElementsAre(-1, 2));
  EXPECT_THAT(nested->arrays[1].unsigneds, testing::ElementsAre(1));
}

TEST(Reader, absent_keys_are_nothing_and_mistyped_ones_are_errors_naming_the_key) {
  FileBytes file(0, 4);
  file.key<int32_t>("negative", ValueType::kInt32, -5).key<uint8_t>("flag", ValueType::kBool, 1);
  file.key("text", ValueType::kString).string("7").key("half", ValueType::kFloat32, 0.5f);
  const Result<Model> opened = file.open();
  ASSERT_TRUE(opened.ok());
  const Model& model = *opened;
  EXPECT_EQ(*model.find_unsigned("absent"), std::nullopt);
  EXPECT_EQ(*model.find_string("absent"), std::nullopt);
  EXPECT_EQ(*model.find_array("absent", ValueType::kString), nullptr);
  EXPECT_THAT(model.find_unsigned("negative").status().message(), HasSubstr("'negative' is int32 -5"));
  EXPECT_THAT(model.find_unsigned("flag").status().message(), HasSubstr("'flag'"));
  EXPECT_THAT(model.find_unsigned("half").status().message(), HasSubstr("'half'"));
  EXPECT_THAT(model.find_float("text").status().message(), HasSubstr("'text'"));
  EXPECT_THAT(model.find_bool("half").status().message(), HasSubstr("'half'"));
  EXPECT_THAT(model.find_string("half").status().message(), HasSubstr("'half'"));
  EXPECT_THAT(model.find_array("text", ValueType::kString).status().message(), HasSubstr("'text'"));
}

TEST(Reader, an_array_of_another_element_type_is_an_error) {
  FileBytes file(0, 1);
  file.key("tokenizer.ggml.scores", ValueType::kArray).array(ValueType::kUint8, 2).raw("ab");
  const Result<Model> model = file.open();
  ASSERT_TRUE(model.ok());
  const Status status = (*model).find_array("tokenizer.ggml.scores", ValueType::kFloat32).status();
  EXPECT_EQ(status.code(), Code::kMalformed);
  EXPECT_THAT(status.message(),
              HasSubstr("'tokenizer.ggml.scores' is an array of uint8; expected an array of float32"));
}

TEST(Reader, a_file_without_tensors_may_end_with_its_metadata) {
  FileBytes file(0, 1);
  file.key<uint32_t>("k", ValueType::kUint32, 1);
  EXPECT_TRUE(file.open().ok());
}

TEST(Reader, places_tensors_by_the_files_own_alignment) {
  FileBytes file(2, 1);
  file.key<uint32_t>("general.alignment", ValueType::kUint32, 64);
  file.tensor("a", {1}, kF32, 0).tensor("b", {1}, kF32, 64).pad(64).number(1.f).pad(64).number(2.f);
  const Result<Model> model = file.open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  float x = 0;
  ASSERT_TRUE((*model).read_tensor(*(*model).find_tensor("b"), 0, std::as_writable_bytes(std::span(&x, 1))).ok());
  EXPECT_EQ(x, 2.f);
}

TEST(Reader, lists_known_types_that_nothing_here_computes_with) {
  FileBytes file(1, 0);
  file.tensor("t", {32}, 39, 0).pad().zeros(17);
  const Result<Model> model = file.open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_STREQ(find_tensor_type((*model).tensors()[0].type_id)->name, "MXFP4");
  EXPECT_EQ((*model).tensors()[0].size_bytes, 17u);
  EXPECT_EQ(find_weight_type(39), nullptr);
}

TEST(Reader, both_type_tables_agree) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    const TensorType* same = find_tensor_type(static_cast<uint32_t>(type.type));
    ASSERT_NE(same, nullptr) << type.name;
    EXPECT_STREQ(same->name, type.name);
    EXPECT_EQ(same->block_elements, type.block_elements);
    EXPECT_EQ(same->block_bytes, type.block_bytes);
  }
}

TEST(Reader, missing_files_and_folders_are_errors) {
  const Status status = Model::open("/nonexistent/m.gguf").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "cannot open /nonexistent/m.gguf: No such file or directory");
  EXPECT_EQ(Model::open("/tmp").status().code(), Code::kInvalidArgument);
}

TEST(Reader, a_vocabulary_of_128k_strings_opens_in_under_a_fifth_of_a_second) {
  const std::string path = LEANSTREAM_SHARED_DIR "/vocab/ggml-vocab-llama-bpe.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const std::clock_t begin = std::clock();  // of this process: other work on the machine does not count
  const Result<Model> model = Model::open(path);
  [[maybe_unused]] const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_TRUE(model.ok());
  EXPECT_EQ((**(*model).find_array("tokenizer.ggml.tokens", ValueType::kString)).size(), 128256u);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(seconds, 0.2);
#endif
}

}  // namespace
}  // namespace leanstream::gguf
