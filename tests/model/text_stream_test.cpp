#include "model/text_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "model/utf8.h"

namespace leanstream::model {
namespace {

TEST(TextStream, shows_plain_text_at_once) {
  TextStream stream({"STOP"});
  EXPECT_EQ(stream.push("Hello"), "Hello");
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.push(" world"), " world");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_FALSE(stream.stopped());
}

TEST(TextStream, holds_an_unfinished_character_until_it_is_whole) {
  TextStream stream({});
  EXPECT_EQ(stream.push("a\xF0"), "a");
  EXPECT_EQ(stream.push("\x9F\xA6"), "");
  EXPECT_EQ(stream.push("\x99z"), "🦙z");
}

TEST(TextStream, gives_an_unfinished_character_as_raw_bytes_at_the_end) {
  TextStream stream({});
  EXPECT_EQ(stream.push("a\xE2\x80"), "a");
  EXPECT_EQ(stream.finish(), "\xE2\x80");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, does_not_wait_for_bytes_that_begin_nothing) {
  TextStream stream({});
  EXPECT_EQ(stream.push("\xFF"), "\xFF");
  EXPECT_EQ(stream.push("\x80"), "\x80");
  EXPECT_EQ(stream.push("\xC0"), "\xC0");          // never a lead byte
  EXPECT_EQ(stream.push("\xED\xA0"), "\xED\xA0");  // a surrogate's beginning
  EXPECT_EQ(stream.push("\xE2"), "");
  EXPECT_EQ(stream.push("a"),
            "\xE2"
            "a");
}

TEST(TextStream, stops_before_a_stop_string_cut_into_pieces) {
  TextStream stream({"\nUser:"});
  EXPECT_EQ(stream.push("Hi\n"), "Hi");
  EXPECT_EQ(stream.push("Us"), "");
  EXPECT_EQ(stream.push("er: more"), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("never shown"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, gives_back_what_turned_out_to_be_no_stop_string) {
  TextStream stream({"aab"});
  EXPECT_EQ(stream.push("aa"), "");
  EXPECT_EQ(stream.push("a"), "a");  // "aa" may still begin it
  EXPECT_EQ(stream.push("c"), "aac");
  EXPECT_EQ(stream.push("xa"), "x");
  EXPECT_EQ(stream.finish(), "a");
  EXPECT_FALSE(stream.stopped());
}

TEST(TextStream, takes_the_stop_string_that_is_complete_first) {
  TextStream earlier({"cd", "b"});
  EXPECT_EQ(earlier.push("abcd"), "a");
  TextStream inner({"abc", "b"});  // "b" is complete one byte before "abc"
  EXPECT_EQ(inner.push("xabc"), "xa");
  TextStream together({"c", "bc"});
  EXPECT_EQ(together.push("abc"), "a");
}

TEST(TextStream, ignores_an_empty_stop_string) {
  TextStream stream({""});
  EXPECT_EQ(stream.push("abc"), "abc");
  EXPECT_FALSE(stream.stopped());
}

TEST(TextStream, finds_stop_strings_of_several_bytes_a_character) {
  TextStream stream({"。終"});
  EXPECT_EQ(stream.push("はい\xE3\x80"), "はい");
  EXPECT_EQ(stream.push("\x82\xE7"), "");
  EXPECT_EQ(stream.push("\xB5\x82"), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, shows_the_same_text_however_it_is_cut_and_never_part_of_a_character) {
  std::mt19937 random(11);
  const std::vector<std::string> parts = {"a", "b", "é", "世", "🦙", "\xFF", "ab", "ba", "\n"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += parts[random() % parts.size()];
    const std::vector<std::string> stops = {parts[random() % 5] + parts[random() % 5] + parts[random() % 5],
                                            parts[random() % 5] + parts[random() % 5]};
    TextStream whole(stops);
    std::string expected = whole.push(text);
    expected += whole.finish();
    TextStream cut(stops);
    std::string shown;
    for (size_t i = 0; i < text.size();) {
      const size_t size = std::min<size_t>(1 + random() % 5, text.size() - i);
      const std::string now = cut.push(text.substr(i, size));
      for (size_t at = 0; at < now.size();) {
        const Utf8Head head = utf8_head(std::string_view(now).substr(at));
        ASSERT_TRUE(head.kind == Utf8Head::kCharacter || now[at] == '\xFF');
        at += head.size;
      }
      shown += now;
      i += size;
    }
    shown += cut.finish();
    ASSERT_EQ(shown, expected);
    ASSERT_EQ(cut.stopped(), whole.stopped());
  }
}

}  // namespace
}  // namespace leanstream::model
