#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <random>

#include "gguf/reader.h"
#include "tests/gguf/file_bytes.h"

namespace leanstream::gguf {
namespace {

using testing::HasSubstr;

class RandomMetadata {
 public:
  explicit RandomMetadata(uint32_t seed) : random_(seed) {}

  size_t below(size_t n) { return random_() % n; }

  std::string text() {
    std::string s(below(20), '\0');
    for (char& c : s) c = static_cast<char>(random_());
    return s;
  }

  Value value() {
    const ValueType type = any_type(true);
    switch (type) {
      case ValueType::kString:
        return {type, text()};
      case ValueType::kArray:
        return {type, array(1)};
      case ValueType::kFloat32:
      case ValueType::kFloat64:
        return {type, real(type)};
      case ValueType::kInt8:
      case ValueType::kInt16:
      case ValueType::kInt32:
      case ValueType::kInt64:
        return {type, signed_number(type)};
      default:
        return {type, unsigned_number(type)};
    }
  }

 private:
  ValueType any_type(bool arrays) {
    const ValueType type = static_cast<ValueType>(below(kValueTypeCount));
    return type == ValueType::kArray && !arrays ? ValueType::kString : type;
  }

  Array array(int depth) {
    Array array;
    array.type = any_type(depth < 4);
    for (size_t n = below(6); n > 0; --n) {
      switch (array.type) {
        case ValueType::kString:
          array.strings.push_back(text());
          break;
        case ValueType::kArray:
          array.arrays.push_back(this->array(depth + 1));
          break;
        case ValueType::kFloat32:
        case ValueType::kFloat64:
          array.floats.push_back(real(array.type));
          break;
        case ValueType::kInt8:
        case ValueType::kInt16:
        case ValueType::kInt32:
        case ValueType::kInt64:
          array.signeds.push_back(signed_number(array.type));
          break;
        default:
          array.unsigneds.push_back(unsigned_number(array.type));
          break;
      }
    }
    return array;
  }

  int bits(ValueType type) {
    switch (type) {
      case ValueType::kBool:
        return 1;
      case ValueType::kUint8:
      case ValueType::kInt8:
        return 8;
      case ValueType::kUint16:
      case ValueType::kInt16:
        return 16;
      case ValueType::kUint32:
      case ValueType::kInt32:
        return 32;
      default:
        return 64;
    }
  }
  uint64_t unsigned_number(ValueType type) { return random_() >> (64 - bits(type)); }
  int64_t signed_number(ValueType type) { return static_cast<int64_t>(random_()) >> (64 - bits(type)); }
  double real(ValueType type) {
    const double x = std::normal_distribution<double>()(random_);
    return type == ValueType::kFloat32 ? static_cast<double>(static_cast<float>(x)) : x;
  }

  std::mt19937_64 random_;
};

TEST(Writer, what_it_writes_reads_back_the_same) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    RandomMetadata random(seed);
    const uint64_t alignment = uint64_t{8} << random.below(10);
    Writer writer(alignment);
    std::vector<std::pair<std::string, Value>> expected;
    if (alignment != 32) expected.push_back({"general.alignment", {ValueType::kUint32, alignment}});
    for (size_t i = 0; i < 20; ++i) {
      expected.emplace_back("key." + std::to_string(i) + random.text(), random.value());
      writer.set(expected.back().first, expected.back().second);
    }
    const WeightTypeTraits& type = kWeightTypes[random.below(kWeightTypes.size())];
    std::vector<std::string> contents;
    for (size_t i = 0; i < 4; ++i) {
      const std::vector<uint64_t> dims = {type.block_elements * (1 + random.below(3)), 1 + random.below(5)};
      writer.add_tensor("tensor." + std::to_string(i), type.type, dims);
      std::string bytes(row_bytes(type.type, dims[0]) * dims[1], '\0');
      for (char& c : bytes) c = static_cast<char>(random.below(256));
      contents.push_back(bytes);
    }
    const std::string path = FileBytes::path("random.gguf");
    ASSERT_TRUE(writer.begin(path).ok());
    for (const std::string& bytes : contents) {  // in two parts
      const auto whole = std::as_bytes(std::span(bytes));
      ASSERT_TRUE(writer.write_tensor(whole.first(whole.size() / 2)).ok());
      ASSERT_TRUE(writer.write_tensor(whole.subspan(whole.size() / 2)).ok());
    }
    ASSERT_TRUE(writer.commit().ok());
    EXPECT_EQ(std::filesystem::file_size(path), writer.file_bytes());

    const Result<Model> model = Model::open(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model).metadata(), expected);
    EXPECT_EQ((*model).alignment(), alignment);
    for (size_t i = 0; i < contents.size(); ++i) {
      std::string bytes(contents[i].size(), '\0');
      const TensorInfo& tensor = (*model).tensors()[i];
      EXPECT_EQ(tensor.offset % alignment, 0u);
      ASSERT_TRUE((*model).read_tensor(tensor, 0, std::as_writable_bytes(std::span(bytes))).ok());
      EXPECT_EQ(bytes, contents[i]);
    }
  }
}

TEST(Writer, a_key_set_twice_keeps_its_place_and_takes_the_new_value) {
  Writer writer;
  writer.set_uint32("a", 1);
  writer.set_uint32("b", 2);
  writer.set_string("a", "three");
  const std::string path = FileBytes::path("twice.gguf");
  ASSERT_TRUE(writer.begin(path).ok());
  ASSERT_TRUE(writer.commit().ok());
  const Result<Model> model = Model::open(path);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ((*model).metadata()[0].first, "a");
  EXPECT_EQ(**(*model).find_string("a"), "three");
}

TEST(Writer, nothing_appears_before_commit_and_nothing_stays_without_it) {
  const std::string path = FileBytes::path("unfinished.gguf");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  {
    Writer writer;
    writer.add_tensor("t", WeightType::kF32, {4});
    ASSERT_TRUE(writer.begin(path).ok());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_THAT(writer.commit().message(), HasSubstr("tensor 't' is incomplete: 0 of 16"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Writer, more_bytes_than_announced_are_refused) {
  Writer writer;
  writer.add_tensor("t", WeightType::kF32, {1});
  ASSERT_TRUE(writer.begin(FileBytes::path("more.gguf")).ok());
  EXPECT_EQ(writer.write_tensor(std::vector<std::byte>(8)).code(), Code::kInternal);
}

TEST(Writer, a_file_system_without_room_is_told_beforehand) {
  Writer writer;
  writer.add_tensor("t", WeightType::kF32, {uint64_t{1} << 50});
  const std::string path = FileBytes::path("huge.gguf");
  const Status status = writer.begin(path);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("are free"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Writer, a_write_that_fails_midway_says_why_and_leaves_nothing) {
  const std::string path = FileBytes::path("limited.gguf");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);

  // A limit on file sizes stands in for a full disk.
  struct rlimit old_limit {};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const struct rlimit limit = {rlim_t{3} << 20, old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  Status status;
  {
    Writer writer;
    writer.add_tensor("t", WeightType::kF32, {size_t{4} << 20});
    status = writer.begin(path);
    const std::vector<std::byte> chunk(size_t{1} << 20);
    for (int i = 0; i < 16 && status.ok(); ++i) status = writer.write_tensor(chunk);
  }
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr(path), HasSubstr("File too large")));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace leanstream::gguf
