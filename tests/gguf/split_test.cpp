#include "gguf/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/gguf/file_bytes.h"

namespace leanstream::gguf {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kFirst = "m-00001-of-00003.gguf";
constexpr const char* kSecond = "m-00002-of-00003.gguf";
constexpr const char* kThird = "m-00003-of-00003.gguf";

// Part `number` (from 0) with one tensor of one F32, whose value is the part's number.
FileBytes part(uint16_t number, uint16_t count, const std::string& tensor, int32_t tensor_count = 3) {
  FileBytes file(1, number == 0 ? 4 : 3);
  if (number == 0) file.key("general.architecture", ValueType::kString).string("llama");
  file.key("split.no", ValueType::kUint16, number).key("split.count", ValueType::kUint16, count);
  file.key("split.tensors.count", ValueType::kInt32, tensor_count);
  return file.tensor(tensor, {1}, 0, 0).pad().number(static_cast<float>(number));
}

class Split : public testing::Test {
 protected:
  void SetUp() override {
    part(0, 3, "a").save(kFirst);
    part(1, 3, "b").save(kSecond);
    part(2, 3, "c").save(kThird);
  }

  static Result<Model> open(const std::string& name = kFirst) { return Model::open(FileBytes::path(name)); }
  static std::string message(const std::string& name, Code code) {
    const Result<Model> model = open(name);
    EXPECT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), code) << model.status().message();
    return model.status().message();
  }
};

TEST_F(Split, is_opened_by_its_first_part) {
  const Result<Model> model = open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ((*model).files().size(), 3u);
  EXPECT_EQ(**(*model).find_string("general.architecture"), "llama");
  for (const TensorInfo& tensor : (*model).tensors()) {
    float x = -1;
    ASSERT_TRUE((*model).read_tensor(tensor, 0, std::as_writable_bytes(std::span(&x, 1))).ok());
    EXPECT_EQ(x, static_cast<float>(tensor.file_index));
  }
  EXPECT_EQ((*model).find_tensor("c")->file_index, 2u);
}

TEST_F(Split, another_part_given_says_which_to_open) {
  EXPECT_THAT(message(kThird, Code::kInvalidArgument),
              AllOf(HasSubstr("part 3 of 3"), HasSubstr("open the first"), HasSubstr(FileBytes::path(kFirst))));
}

TEST_F(Split, a_missing_part_is_named) {
  std::remove(FileBytes::path(kSecond).c_str());
  EXPECT_THAT(message(kFirst, Code::kNotFound), AllOf(HasSubstr("part 2 of 3"), HasSubstr(FileBytes::path(kSecond))));
}

TEST_F(Split, counts_that_disagree_are_refused) {
  part(0, 4, "a").save(kFirst);
  EXPECT_THAT(message(kFirst, Code::kMalformed), AllOf(HasSubstr("1 of 3"), HasSubstr("1 of 4")));
  part(0, 3, "a").save(kFirst);
  part(1, 4, "b").save(kSecond);
  EXPECT_THAT(message(kFirst, Code::kMalformed), AllOf(HasSubstr("expected part 2 of 3"), HasSubstr("part 2 of 4")));
  part(2, 3, "b").save(kSecond);
  EXPECT_THAT(message(kFirst, Code::kMalformed), AllOf(HasSubstr("expected part 2 of 3"), HasSubstr("part 3 of 3")));
}

TEST_F(Split, a_wrong_number_of_tensors_is_refused) {
  part(0, 3, "a", 5).save(kFirst);
  EXPECT_THAT(message(kFirst, Code::kMalformed), AllOf(HasSubstr("5 tensors"), HasSubstr("hold 3")));
}

TEST_F(Split, a_tensor_in_two_parts_is_refused_naming_both) {
  part(2, 3, "a").save(kThird);
  EXPECT_THAT(
      message(kFirst, Code::kMalformed),
      AllOf(HasSubstr("'a' is given twice"), HasSubstr(FileBytes::path(kFirst)), HasSubstr(FileBytes::path(kThird))));
}

TEST_F(Split, a_part_that_was_renamed_is_refused) {
  part(0, 3, "a").save("renamed.gguf");
  EXPECT_THAT(message("renamed.gguf", Code::kMalformed), HasSubstr("-00001-of-00003.gguf"));
}

TEST_F(Split, a_damaged_part_is_named) {
  part(1, 3, "b").cut(100).save(kSecond);
  EXPECT_THAT(message(kFirst, Code::kMalformed), AllOf(HasSubstr("part 2 of 3"), HasSubstr(FileBytes::path(kSecond))));
}

TEST_F(Split, impossible_keys_are_refused) {
  part(3, 3, "a").save(kFirst);
  EXPECT_THAT(message(kFirst, Code::kMalformed), HasSubstr("'split.no'"));
  FileBytes(0, 1).key<int32_t>("split.count", ValueType::kInt32, -1).save(kFirst);
  EXPECT_THAT(message(kFirst, Code::kMalformed), HasSubstr("'split.count'"));
}

TEST_F(Split, a_set_of_one_needs_no_special_name) {
  part(0, 1, "a", 1).save("whole.gguf");
  EXPECT_TRUE(open("whole.gguf").ok());
}

}  // namespace
}  // namespace leanstream::gguf
