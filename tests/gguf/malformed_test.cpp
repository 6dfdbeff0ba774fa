// Files that break the format's rules, most of them after bugs that other readers had. Each is refused when opened, at
// once and in little memory, with a sentence that names what is wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory.h"
#include "tests/gguf/file_bytes.h"

namespace leanstream::gguf {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;

class Malformed : public testing::Test {
 protected:
  void SetUp() override { peak_before_ = process_peak_rss_bytes(); }
  // Whatever a file claims, opening it takes no more than a few buffers.
  void TearDown() override { EXPECT_LT(process_peak_rss_bytes() - peak_before_, uint64_t{16} << 20); }

  static std::string message(const FileBytes& file, Code code = Code::kMalformed) {
    const Result<Model> model = file.open();
    EXPECT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), code) << model.status().message();
    EXPECT_THAT(model.status().message(), HasSubstr(FileBytes::path("file.gguf")));
    return model.status().message();
  }

 private:
  uint64_t peak_before_ = 0;
};

TEST_F(Malformed, files_of_other_formats) {
  EXPECT_THAT(message(FileBytes().raw("")), HasSubstr("not a GGUF file"));
  EXPECT_THAT(message(FileBytes().raw("GGU")), HasSubstr("not a GGUF file"));
  EXPECT_THAT(message(FileBytes().raw("<html>\n<body>")), HasSubstr("begins with \"<htm\""));
  EXPECT_THAT(message(FileBytes().zeros(4096)), HasSubstr("begins with zeros"));
}

TEST_F(Malformed, versions_and_byte_orders_that_are_not_supported_are_named) {
  EXPECT_THAT(message(FileBytes(0, 0, 1), Code::kUnsupported), HasSubstr("GGUF version 1"));
  EXPECT_THAT(message(FileBytes(0, 0, 4), Code::kUnsupported), HasSubstr("GGUF version 4"));
  EXPECT_THAT(message(FileBytes(0, 0, 0x03000000), Code::kUnsupported), HasSubstr("big-endian"));
  EXPECT_THAT(message(FileBytes().raw("FUGG").zeros(64), Code::kUnsupported), HasSubstr("big-endian"));
}

TEST_F(Malformed, counts_beyond_what_the_file_could_hold) {
  for (uint64_t count : {uint64_t{1} << 63, uint64_t{1} << 60, UINT64_MAX / 64, UINT64_MAX, uint64_t{1000}}) {
    EXPECT_THAT(message(FileBytes(count, 0).zeros(64)), HasSubstr(std::to_string(count) + " tensors"));
    EXPECT_THAT(message(FileBytes(0, count).zeros(64)), HasSubstr(std::to_string(count) + " metadata keys"));
  }
}

TEST_F(Malformed, strings_longer_than_the_file) {
  constexpr size_t kRest = 32;  // bytes that do follow
  for (uint64_t length : {UINT64_MAX, uint64_t{1} << 63, uint64_t{kRest + 1}}) {
    const std::string said = "a string of " + std::to_string(length) + " bytes";
    FileBytes value(0, 1);
    value.key("k", ValueType::kString).number(length).zeros(kRest);
    EXPECT_THAT(message(value), AllOf(HasSubstr("'k'"), HasSubstr(said)));
    FileBytes element(0, 1);
    element.key("k", ValueType::kArray).array(ValueType::kString, 1).number(length).zeros(kRest);
    EXPECT_THAT(message(element), AllOf(HasSubstr("'k'"), HasSubstr(said)));
    EXPECT_THAT(message(FileBytes(0, 1).number(length).zeros(kRest)), AllOf(HasSubstr("key 0"), HasSubstr(said)));
    EXPECT_THAT(message(FileBytes(1, 0).number(length).zeros(kRest)), AllOf(HasSubstr("tensor 0"), HasSubstr(said)));
  }
}

TEST_F(Malformed, arrays_longer_than_the_file) {
  for (ValueType type : {ValueType::kUint8, ValueType::kInt16, ValueType::kFloat32, ValueType::kFloat64,
                         ValueType::kBool, ValueType::kString, ValueType::kArray}) {
    for (uint64_t count : {uint64_t{1} << 63, UINT64_MAX, UINT64_MAX / 8 + 1, uint64_t{100}}) {
      FileBytes file(0, 1);
      file.key("k", ValueType::kArray).array(type, count).zeros(50);
      EXPECT_THAT(message(file), AllOf(HasSubstr("'k'"), HasSubstr("an array of " + std::to_string(count))));
    }
  }
}

TEST_F(Malformed, arrays_nested_without_end) {
  FileBytes file(0, 1);
  file.key("k", ValueType::kArray);
  for (int depth = 0; depth < 10000; ++depth) file.array(ValueType::kArray, 1);
  EXPECT_THAT(message(file, Code::kUnsupported), HasSubstr("nested more than 4 deep"));
}

TEST_F(Malformed, value_types_that_do_not_exist) {
  EXPECT_THAT(message(FileBytes(0, 1).string("k").number(13u).zeros(8)), HasSubstr("value type 13"));
  FileBytes array(0, 1);
  array.key("k", ValueType::kArray).number(UINT32_MAX).number<uint64_t>(0);
  EXPECT_THAT(message(array), HasSubstr("value type 4294967295"));
}

TEST_F(Malformed, bools_that_are_neither) {
  EXPECT_THAT(message(FileBytes(0, 1).key<uint8_t>("k", ValueType::kBool, 2)), HasSubstr("bool of value 2"));
}

TEST_F(Malformed, keys_given_twice) {
  FileBytes file(0, 2);
  file.key<uint8_t>("k", ValueType::kUint8, 1).key<uint8_t>("k", ValueType::kUint8, 1);
  EXPECT_THAT(message(file), HasSubstr("'k' is given twice"));
}

TEST_F(Malformed, alignments_that_are_no_power_of_two_or_absurd_or_mistyped) {
  for (uint32_t alignment : {0u, 3u, 48u, 1u << 31, UINT32_MAX}) {
    FileBytes file(0, 1);
    file.key("general.alignment", ValueType::kUint32, alignment);
    EXPECT_THAT(message(file), HasSubstr("'general.alignment' is " + std::to_string(alignment)));
  }
  FileBytes wide(0, 1);
  wide.key<uint64_t>("general.alignment", ValueType::kUint64, 32);
  EXPECT_THAT(message(wide), HasSubstr("'general.alignment' is of type uint64"));
  FileBytes text(0, 1);
  text.key("general.alignment", ValueType::kString).string("32");
  EXPECT_THAT(message(text), HasSubstr("'general.alignment' is of type string"));
}

TEST_F(Malformed, numbers_of_dimensions_outside_1_to_4) {
  for (uint32_t n_dims : {0u, 5u, 9u, UINT32_MAX}) {
    FileBytes file(1, 0);
    file.string("t").number(n_dims).zeros(200);
    EXPECT_THAT(message(file), AllOf(HasSubstr("'t'"), HasSubstr(std::to_string(n_dims) + " dimensions")));
  }
}

TEST_F(Malformed, dimensions_whose_product_or_size_in_bytes_wraps) {
  const auto with_dims = [](std::initializer_list<uint64_t> dims, uint32_t type = kF32) {
    return FileBytes(1, 0).tensor("t", dims, type, 0).pad().zeros(64);
  };
  constexpr uint64_t k1 = 1;
  EXPECT_THAT(message(with_dims({k1 << 32, k1 << 32})), HasSubstr("'t'"));
  EXPECT_THAT(message(with_dims({k1 << 20, (k1 << 42) + 1, 2})), HasSubstr("more than 64 bits"));
  EXPECT_THAT(message(with_dims({k1 << 62})), HasSubstr("more than 64 bits"));  // times 4 bytes
  EXPECT_THAT(message(with_dims({k1 << 16, k1 << 16, k1 << 16, k1 << 16})), HasSubstr("more than 64 bits"));
  // A product of elements that wraps, though blocks do not: 2^63 * 2 elements of half a byte.
  EXPECT_THAT(message(with_dims({k1 << 63, 2}, kQ4_0)), HasSubstr("more than 64 bits"));
  EXPECT_THAT(message(with_dims({UINT64_MAX - 31})), HasSubstr("'t'"));
  EXPECT_THAT(message(with_dims({4, 0})), HasSubstr("dimension 1 is 0"));
  EXPECT_THAT(message(with_dims({0, 4})), HasSubstr("dimension 0 is 0"));
}

TEST_F(Malformed, offsets_whose_sum_with_the_size_wraps) {
  FileBytes file(1, 0);
  file.tensor("t", {16}, kF32, UINT64_MAX - 31).pad().zeros(64);
  EXPECT_THAT(message(file), AllOf(HasSubstr("'t'"), HasSubstr("more than 64 bits")));
  FileBytes small(1, 0);  // wraps only with the bytes of the head
  small.tensor("t", {1}, kF32, UINT64_MAX - 63).pad().zeros(64);
  EXPECT_THAT(message(small), AllOf(HasSubstr("'t'"), HasSubstr("more than 64 bits")));
}

TEST_F(Malformed, offsets_that_are_not_aligned) {
  FileBytes file(1, 0);
  file.tensor("t", {1}, kF32, 8).pad().zeros(64);
  EXPECT_THAT(message(file), AllOf(HasSubstr("'t'"), HasSubstr("offset 8")));
}

TEST_F(Malformed, rows_that_are_not_whole_blocks) {
  FileBytes file(1, 0);
  file.tensor("t", {33, 32}, kQ4_0, 0).pad().zeros(4096);
  EXPECT_THAT(message(file), AllOf(HasSubstr("'t'"), HasSubstr("rows of 33"), HasSubstr("Q4_0")));
}

TEST_F(Malformed, tensor_names_given_twice) {
  FileBytes file(2, 0);
  file.tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).pad().zeros(64);
  EXPECT_THAT(message(file), HasSubstr("'t' is given twice"));
}

TEST_F(Malformed, tensor_types_that_are_unknown_or_were_taken_back) {
  for (uint32_t id : {4u, 5u, 31u, 36u, 38u, 43u, 999u, UINT32_MAX}) {
    FileBytes file(1, 0);
    file.tensor("blk.0.x", {32}, id, 0).pad().zeros(256);
    EXPECT_THAT(message(file, Code::kUnsupported),
                AllOf(HasSubstr("'blk.0.x'"), HasSubstr("type id " + std::to_string(id) + " is not supported")));
  }
}

TEST_F(Malformed, names_that_are_absurdly_long) {
  EXPECT_THAT(message(FileBytes(0, 1).string(std::string(70000, 'k')).number(0u).zeros(8)),
              HasSubstr("a name of 70000"));
}

TEST_F(Malformed, a_head_that_would_be_larger_than_any_real_one) {
  // A sparse file that does have the bytes.
  const std::string path =
      FileBytes(0, 1).key("k", ValueType::kArray).array(ValueType::kUint8, uint64_t{1} << 32).save();
  std::filesystem::resize_file(path, uint64_t{5} << 30);
  const Status status = Model::open(path).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("the head would be larger than"));
  std::filesystem::remove(path);
}

TEST_F(Malformed, a_file_cut_anywhere_is_refused_and_says_what_it_should_have_been) {
  FileBytes whole(2, 2);
  whole.key("general.architecture", ValueType::kString).string("llama");
  whole.key("list", ValueType::kArray).array(ValueType::kString, 2).string("one").string("two");
  whole.tensor("first", {8}, kF32, 0).tensor("second", {8, 2}, kF32, 32).pad();
  const size_t head_bytes = whole.bytes().size();
  whole.zeros(32 + 64);
  ASSERT_TRUE(whole.open().ok());
  const size_t size = whole.bytes().size();
  for (size_t cut = 0; cut < size; ++cut) {
    FileBytes part = whole;
    const std::string said = message(part.cut(cut));
    if (cut < head_bytes) continue;
    EXPECT_THAT(said, AllOf(HasSubstr("cut short"), HasSubstr(std::to_string(size) + " bytes expected"),
                            HasSubstr("'second'"), HasSubstr(std::to_string(cut) + " present")));
  }
}

}  // namespace
}  // namespace leanstream::gguf
