// What the fuzzer does, for builds without it: its corpus, and every small damage to a valid file.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/gguf/exercise_reader.h"
#include "tests/gguf/file_bytes.h"

namespace leanstream::gguf {
namespace {

bool exercise(const std::string& bytes) {
  return exercise_reader(std::as_bytes(std::span(bytes)));
}

std::string valid_file() {
  FileBytes file(2, 4);
  file.key("general.architecture", ValueType::kString).string("llama");
  file.key<uint32_t>("general.alignment", ValueType::kUint32, 32);
  file.key("words", ValueType::kArray).array(ValueType::kString, 2).string("a").string("bc");
  file.key("nested", ValueType::kArray).array(ValueType::kArray, 1).array(ValueType::kInt16, 1).number<int16_t>(-1);
  file.tensor("f", {2, 2}, 0, 0).tensor("q", {32}, 2, 32).pad().zeros(32 + 18);
  return file.bytes();
}

TEST(FuzzCorpus, every_file_is_opened_or_refused) {
  size_t files = 0, opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LEANSTREAM_SOURCE_DIR "/tests/gguf/corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    opened += exercise({std::istreambuf_iterator<char>(in), {}}) ? 1 : 0;
    ++files;
  }
  EXPECT_GT(files, 10u);
  EXPECT_GT(opened, 0u);
  EXPECT_LT(opened, files);
}

TEST(FuzzCorpus, every_byte_of_a_valid_file_changed_in_four_ways_is_opened_or_refused) {
  const std::string valid = valid_file();
  ASSERT_TRUE(exercise(valid));
  size_t refused = 0;
  for (size_t i = 0; i < valid.size(); ++i) {
    for (const unsigned char change : {0x01, 0x80, 0xff, 0x10}) {
      std::string damaged = valid;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ change);
      refused += exercise(damaged) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, valid.size());
}

TEST(FuzzCorpus, every_eight_bytes_made_huge_are_opened_or_refused) {
  const std::string valid = valid_file();
  for (size_t i = 0; i + 8 <= valid.size(); ++i) {
    for (const uint64_t huge : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 32, UINT64_MAX / 8, UINT64_MAX - 31}) {
      std::string damaged = valid;
      damaged.replace(i, 8, reinterpret_cast<const char*>(&huge), 8);
      exercise(damaged);
    }
  }
}

}  // namespace
}  // namespace leanstream::gguf
