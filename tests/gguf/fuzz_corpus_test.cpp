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

// A pack of one layer: 16 neurons of width 1, in F32.
std::string valid_pack() {
  const auto key = [](const char* name) { return std::string("leanstream.pack.") + name; };
  FileBytes file(2, 13);
  file.key<uint32_t>("general.alignment", ValueType::kUint32, 4096);
  file.key<uint32_t>(key("version"), ValueType::kUint32, 1);
  file.key(key("kind"), ValueType::kString).string("exact");
  file.key(key("checksum"), ValueType::kString).string("xxh3-64");
  file.key(key("source.name"), ValueType::kString).string("m");
  file.key<uint64_t>(key("source.bytes"), ValueType::kUint64, 1);
  file.key(key("source.xxh3"), ValueType::kString).string("0123456789abcdef");
  file.key<uint32_t>(key("d_model"), ValueType::kUint32, 1);
  file.key<uint32_t>(key("d_ff"), ValueType::kUint32, 16);
  file.key(key("tile_neurons"), ValueType::kArray).array(ValueType::kUint32, 1).number<uint32_t>(16);
  for (const char* types : {"gate_types", "up_types", "down_types"}) {
    file.key(key(types), ValueType::kArray).array(ValueType::kUint32, 1).number<uint32_t>(0);
  }
  file.tensor("blk.0.ffn_tiles", {4096, 1}, 24, 0).tensor("blk.0.ffn_tile_checksums", {1}, 27, 4096);
  file.pad(4096).zeros(4096 + 8);
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

// Where damage can tell: before the tensors' zeros.
size_t head_bytes(const std::string& file) {
  return file.find_last_not_of('\0') + 1;
}

TEST(FuzzCorpus, every_byte_of_a_valid_file_changed_in_four_ways_is_opened_or_refused) {
  for (const std::string& valid : {valid_file(), valid_pack()}) {
    ASSERT_TRUE(exercise(valid));
    size_t refused = 0;
    for (size_t i = 0; i < head_bytes(valid); ++i) {
      for (const unsigned char change : {0x01, 0x80, 0xff, 0x10}) {
        std::string damaged = valid;
        damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ change);
        refused += exercise(damaged) ? 0 : 1;
      }
    }
    EXPECT_GT(refused, head_bytes(valid));
  }
}

TEST(FuzzCorpus, every_eight_bytes_made_huge_are_opened_or_refused) {
  for (const std::string& valid : {valid_file(), valid_pack()}) {
    for (size_t i = 0; i < head_bytes(valid); ++i) {
      for (const uint64_t huge : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 32, UINT64_MAX / 8, UINT64_MAX - 31}) {
        std::string damaged = valid;
        damaged.resize(std::max(damaged.size(), i + 8));
        damaged.replace(i, 8, reinterpret_cast<const char*>(&huge), 8);
        exercise(damaged);
      }
    }
  }
}

}  // namespace
}  // namespace leanstream::gguf
