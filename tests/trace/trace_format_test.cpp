// The format as docs/trace.md has it, byte by byte.
#include <gtest/gtest.h>

#include "trace/block.h"
#include "trace/trace_reader.h"
#include "trace_bytes.h"

namespace leanstream::trace {
namespace {

TEST(Varint, has_seven_bits_a_byte) {
  EXPECT_EQ(varints({0}), std::string("\0", 1));
  EXPECT_EQ(varints({127}), "\x7f");
  EXPECT_EQ(varints({128}), "\x80\x01");
  EXPECT_EQ(varints({300}), "\xac\x02");
  EXPECT_EQ(varints({UINT64_MAX}).size(), 10u);
  for (const uint64_t value : {uint64_t{0}, uint64_t{1} << 35, UINT64_MAX})
    EXPECT_EQ(Cursor(as_bytes(varints({value}))).varint(), value);
}

TEST(Varint, of_more_than_64_bits_or_without_an_end_is_none) {
  EXPECT_EQ(Cursor(as_bytes(std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"))).varint(), std::nullopt);
  EXPECT_EQ(Cursor(as_bytes(std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))).varint(), std::nullopt);
  EXPECT_EQ(Cursor(as_bytes(std::string("\x80"))).varint(), std::nullopt);
  EXPECT_EQ(Cursor({}).varint(), std::nullopt);
}

// Two layers of 20 and 4 pieces; a token that demands 3, 4, 5 and 19, and nothing; one that demands every second piece,
// and all.
TEST(Trace, is_what_the_documentation_says) {
  const ScratchPath scratch("documented");
  Header header;
  header.model = "M";
  header.pieces = "neuron";
  header.selection = "all";
  header.layers = {{{20, 300}}, {{4, 7}}};
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), header);
  ASSERT_TRUE(writer.ok());
  const std::vector<uint64_t> scattered = {1u << 3 | 1u << 4 | 1u << 5 | 1u << 19}, none = {0},
                              every_second = {0x55555};
  writer->add_layer(scattered);
  writer->add_layer(none);
  ASSERT_TRUE(writer->end_token().ok());
  writer->add_layer(every_second);
  writer->add_whole_layer();
  ASSERT_TRUE(writer->end_token().ok());
  ASSERT_TRUE(writer->commit().ok());

  const std::string expected = "lstrace1" +
                               block(std::string("\x01"
                                                 "M\x06neuron\x03"
                                                 "all") +
                                     varints({2, 20, 20, 300, 4, 4, 7})) +
                               // 20 pieces have a bitmap of 3 bytes: two runs take 4
                               block(varints({1}) + std::string("\x38\x00\x08", 3) + varints({0})) +
                               block(varints({1}) + "\x55\x55\x05" + varints({2, 0, 3})) + varints({0, 2});
  EXPECT_EQ(file_bytes(scratch.path()), expected);
}

TEST(Trace, checksums_are_xxh3_64) {
  std::string checksum;
  append_checksum(checksum, {});
  EXPECT_EQ(checksum, "\xc2\x94\xd3\x38\x05\x80\x06\x2d") << "that of nothing, low byte first";
}

}  // namespace
}  // namespace leanstream::trace
