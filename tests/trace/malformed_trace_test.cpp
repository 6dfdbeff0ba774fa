// Whatever the bytes, the reader gives tokens that keep its promises, or one sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "exercise_trace.h"
#include "trace/trace_reader.h"
#include "trace_bytes.h"

namespace leanstream::trace {
namespace {

using ::testing::HasSubstr;

std::string start() {
  return std::string(kMagic) + block(encode(small_header()));
}

TEST(MalformedTrace, that_is_none_says_so) {
  EXPECT_THAT(exercise_trace({}), HasSubstr("it is no trace"));
  EXPECT_THAT(exercise_trace(as_bytes("GGUF and so on, and on")), HasSubstr("it is no trace"));
  EXPECT_THAT(exercise_trace(as_bytes("lstrace2 and so on")), HasSubstr("another version"));
  EXPECT_THAT(exercise_trace(as_bytes("lstrace1")), HasSubstr("ends within its header"));
  EXPECT_EQ(exercise_trace(as_bytes(start())), "");
}

TEST(MalformedTrace, with_a_wrong_set_says_which_token) {
  const std::string none = varints({0}), good = varints({0, 0, 0});
  const std::vector<std::string> bad = {
      varints({0}),                                                 // one layer of three
      varints({3}) + none + none,                                   // no such form
      varints({1}) + std::string(12, '\0'),                         // a short bitmap
      varints({1}) + std::string(12, '\0') + "\x10" + none + none,  // a piece after the last
      varints({2, 100, 0}) + none + none,                           // a run from beyond the end
      varints({2, 50, 50}) + none + none,                           // over it
      varints({4, 0, 0, 0, 0}) + none + none,                       // two runs that are one
      varints({2, UINT64_MAX, 0}) + none + none,
      varints({2, 0, UINT64_MAX}) + none + none,
      varints({UINT64_MAX - 1, 0, 0}) + none + none,  // as many runs as can be
      varints({2, 0}),                                // half a run
      none + none + varints({2, 0, 0}),               // a piece of a layer without pieces
      good + none,                                    // a fourth layer
  };
  for (size_t i = 0; i < bad.size(); ++i)
    EXPECT_THAT(exercise_trace(as_bytes(start() + block(good) + block(bad[i]))), HasSubstr("token 1 ")) << i;
  EXPECT_EQ(exercise_trace(as_bytes(start() + block(good) + block(good) + varints({0, 2}))), "");
}

TEST(MalformedTrace, with_a_wrong_end_says_so) {
  const std::string token = block(varints({0, 0, 0}));
  EXPECT_THAT(exercise_trace(as_bytes(start() + token + varints({0, 2}))), HasSubstr("its end"));
  EXPECT_THAT(exercise_trace(as_bytes(start() + token + varints({0, 1}) + "x")), HasSubstr("its end"));
  EXPECT_THAT(exercise_trace(as_bytes(start() + token + std::string(4096, '\0'))), HasSubstr("its end"));
}

TEST(MalformedTrace, with_a_length_beyond_its_end_is_cut_there) {
  const std::string token = block(varints({0, 0, 0}));
  for (const uint64_t length : {uint64_t{100}, uint64_t{1} << 40, UINT64_MAX}) {
    const std::string bytes = start() + token + varints({length}) + "some bytes";
    Result<TraceReader> reader = TraceReader::open(as_bytes(bytes));
    ASSERT_TRUE(reader.ok());
    cache::Steps steps;
    EXPECT_TRUE(*reader->next_token(steps));
    EXPECT_FALSE(*reader->next_token(steps));
    EXPECT_FALSE(*reader->next_token(steps));
    EXPECT_FALSE(reader->complete());
  }
}

std::string sample() {
  const ScratchPath scratch("sample");
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), small_header());
  EXPECT_TRUE(writer.ok() && write_sets(*writer, random_sets(small_header(), 6, 4)).ok() && writer->commit().ok());
  return file_bytes(scratch.path());
}

TEST(MalformedTrace, with_any_bit_flipped_is_noticed) {
  const std::string whole = sample();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const Result<TraceReader> opened = TraceReader::open(as_bytes(bytes));
      if (!exercise_trace(as_bytes(bytes)).empty() || !opened.ok()) continue;
      // What is left is a length that now leads beyond the end: not complete.
      TraceReader reader = *opened;
      cache::Steps steps;
      while (*reader.next_token(steps)) {
      }
      EXPECT_FALSE(reader.complete()) << i << " " << bit;
    }
  }
}

TEST(MalformedTrace, of_random_changes_breaks_no_promise) {
  const std::string whole = sample();
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (uint32_t changes = 1 + random() % 8; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        case 2:
          bytes.insert(at, std::string(1 + random() % 8, static_cast<char>(random())));
          break;
        default:
          bytes.resize(1 + at);
          break;
      }
      if (bytes.empty()) break;
    }
    exercise_trace(as_bytes(bytes));
  }
}

// The checksum stops most changes: here payloads are changed and given the checksum that fits.
TEST(MalformedTrace, with_fitting_checksums_breaks_no_promise) {
  std::mt19937 random(2);
  const std::string header = encode(small_header());
  const std::string token = varints({4, 3, 2, 5, 0, 2, 1, 1, 0});
  for (int i = 0; i < 20000; ++i) {
    std::string changed_header = header, changed_token = token;
    std::string& payload = random() % 2 ? changed_header : changed_token;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes)
      payload[random() % payload.size()] = static_cast<char>(random() % 3 ? random() % 16 : random());
    exercise_trace(as_bytes(std::string(kMagic) + block(changed_header) + block(changed_token) + varints({0, 1})));
  }
}

}  // namespace
}  // namespace leanstream::trace
