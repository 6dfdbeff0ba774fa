#include "trace/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace_bytes.h"

namespace leanstream::trace {
namespace {

using ::testing::HasSubstr;

TEST(Header, comes_back_as_it_was) {
  const Header header = small_header();
  const Result<Header> back = decode_header(as_bytes(encode(header)));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->model, header.model);
  EXPECT_EQ(back->pieces, header.pieces);
  EXPECT_EQ(back->selection, header.selection);
  EXPECT_EQ(piece_bytes(*back), piece_bytes(header));
  EXPECT_EQ(back->layers.size(), 3u);
}

TEST(Header, sums_its_layers) {
  EXPECT_EQ(piece_count(small_header()), 107u);
  EXPECT_EQ(total_bytes(small_header()), 600u + 480 + 35);
  EXPECT_EQ(piece_bytes(small_header())[60], 12u);
}

TEST(Header, has_limits_and_names_them) {
  Header header = small_header();
  EXPECT_TRUE(check(header).ok());
  header.model = std::string(kMaxTextBytes + 1, 'x');
  EXPECT_THAT(check(header).message(), HasSubstr("4097 bytes"));
  header = small_header();
  header.layers.clear();
  EXPECT_THAT(check(header).message(), HasSubstr("not 0"));
  header.layers.assign(3, {{kMaxPieces / 2, 1}});
  EXPECT_THAT(check(header).message(), HasSubstr("100663296"));
  header.layers.assign(1, {{0, 1}});
  EXPECT_FALSE(check(header).ok());
  header.layers.assign(1, {{1, 0}});
  EXPECT_FALSE(check(header).ok());
}

TEST(Header, refuses_what_is_out_of_range) {
  const std::string texts = varints({0, 0, 0});
  const std::vector<std::string> bad = {
      "",
      varints({kMaxTextBytes + 1}),
      varints({5}) + "abc",
      texts,                 // no layers
      texts + varints({0}),  // 0 of them
      texts + varints({kMaxLayers + 1}),
      texts + varints({2, 1, 1, 1}),  // one of two
      texts + varints({1, kMaxPieces + 1, kMaxPieces + 1, 1}),
      texts + varints({2, kMaxPieces, kMaxPieces, 1, 1, 1, 1}),
      texts + varints({1, 4, 5, 1}),        // a run longer than its layer
      texts + varints({1, 4, 0, 1, 4, 1}),  // of nothing
      texts + varints({1, 4, 4, 0}),        // of no bytes
      texts + varints({1, 4, 4, uint64_t{1} << 32}),
      texts + varints({1, 4, 4, 1, 9}),  // bytes after the end
      texts + varints({1, UINT64_MAX, 1, 1}),
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    const Result<Header> header = decode_header(as_bytes(bad[i]));
    EXPECT_EQ(header.status().code(), Code::kMalformed) << i;
    EXPECT_THAT(header.status().message(), ::testing::StartsWith("its header ")) << i;
  }
}

}  // namespace
}  // namespace leanstream::trace
