#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.h"

namespace leanstream::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> chat(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"chat", "-m", tiny_chat_model(), "--temp", "0", "-n", "6", "--ignore-eos"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Chat, answers_each_line_and_ends_with_the_input) {
  const Outcome one = run_leanstream(chat({}), {.input = "hello\n"});
  const Outcome two = run_leanstream(chat({}), {.input = "hello\n\nand then?"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_TRUE(two.out.starts_with(one.out));
  EXPECT_GT(two.out.size(), one.out.size());
  EXPECT_EQ(one.out.back(), '\n');
  EXPECT_THAT(one.out + one.err, Not(HasSubstr("> ")));  // no prompt where nobody sees it
}

TEST(Chat, leaves_at_once_when_there_is_no_input) {
  const Outcome outcome = run_leanstream(chat({}), {.stdin_path = "/dev/null"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
}

TEST(Chat, prefills_only_what_is_new) {
  const TemporaryFolder folder;
  const auto prompt_tokens = [&](const std::string& input) {
    EXPECT_EQ(run_leanstream(chat({"--stats-json", folder.path("s")}), {.input = input}).exit_code, 0);
    return json::parse(read_file(folder.path("s"))).at("prompt_tokens").get<int>();
  };
  const int first = prompt_tokens("a first message of a good many words so that it shows\n");
  const int both = prompt_tokens("a first message of a good many words so that it shows\nno\n");
  EXPECT_LT(both - first, first);  // the second turn holds the first, but does not prefill it
}

TEST(Chat, does_what_the_system_prompt_says_wherever_it_is_written) {
  const TemporaryFolder folder;
  const std::string file = folder.write("system", "Be brief.\n");
  const std::string plain = run_leanstream(chat({}), {.input = "hello\n"}).out;
  const std::string typed = run_leanstream(chat({"-sys", "Be brief."}), {.input = "hello\n"}).out;
  EXPECT_NE(typed, plain);
  EXPECT_EQ(run_leanstream(chat({"-sysf", file}), {.input = "hello\n"}).out, typed);
  EXPECT_EQ(run_leanstream(chat({"-sysf", file, "-sys", "x"}), {.input = "hello\n"}).exit_code, 2);
}

TEST(Chat, stops_after_one_reply_when_asked_to) {
  const Outcome outcome = run_leanstream(chat({"-st"}), {.input = "hello\nmore\n"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, run_leanstream(chat({}), {.input = "hello\n"}).out);
}

TEST(Chat, says_when_the_context_is_full) {
  const Outcome reply = run_leanstream({"chat", "-m", tiny_chat_model(), "--temp", "0", "--ignore-eos", "-c", "64"},
                                       {.input = "hello\nmore\n"});
  EXPECT_EQ(reply.exit_code, 1);
  ASSERT_EQ(error_lines(reply).size(), 1u);
  EXPECT_THAT(error_lines(reply)[0], HasSubstr("context of 64 positions is full"));
  std::string message(2000, 'x');
  const Outcome prompt = run_leanstream(chat({"-c", "64"}), {.input = message + "\n"});
  EXPECT_EQ(prompt.exit_code, 1);
  EXPECT_THAT(error_lines(prompt)[0], HasSubstr("the context holds 64"));
}

TEST(Chat, refuses_a_model_without_a_template_before_loading_it) {
  const Outcome outcome = run_leanstream({"chat", "-m", tiny_model()}, {.input = "hello\n"});
  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_EQ(error_lines(outcome).size(), 1u);
  EXPECT_THAT(error_lines(outcome)[0], HasSubstr("template"));
}

TEST(Chat, takes_a_template_by_its_familys_name) {
  const std::vector<std::string> plain = {"chat", "-m", tiny_model(), "--temp", "0", "-n", "4", "--ignore-eos"};
  std::vector<std::string> named = plain;
  named.insert(named.end(), {"--chat-template", "gemma"});
  EXPECT_EQ(run_leanstream(plain, {.input = "hello\n"}).exit_code, 1);
  const Outcome outcome = run_leanstream(named, {.input = "hello\n"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(outcome.out.size(), 1u);
  named.back() = "jemma";
  const Outcome unknown = run_leanstream(named, {.input = "hello\n"});
  EXPECT_EQ(unknown.exit_code, 1);
  ASSERT_EQ(error_lines(unknown).size(), 1u) << unknown.err;
  EXPECT_THAT(error_lines(unknown)[0], HasSubstr("the families are chatml, llama2"));
}

TEST(Chat, keeps_what_a_message_spells_as_text) {
  const TemporaryFolder folder;
  const auto prompt_tokens = [&](const std::string& message) {
    const Outcome outcome = run_leanstream(chat({"--stats-json", folder.path("s")}), {.input = message + "\n"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(read_file(folder.path("s"))).at("prompt_tokens").get<int>();
  };
  EXPECT_GE(prompt_tokens("<|im_end|>"), prompt_tokens("a") + 3);
}

TEST(Chat, takes_odd_input) {
  const std::string expected = run_leanstream(chat({}), {.input = "hello\n"}).out;
  EXPECT_EQ(run_leanstream(chat({}), {.input = "\n\n\nhello\n\n\n"}).out, expected);
  EXPECT_EQ(run_leanstream(chat({}), {.input = "hello"}).out, expected);
  EXPECT_EQ(run_leanstream(chat({}), {.input = "\n\n"}).out, "");
  for (const std::string& bytes : {std::string("a\0b", 3), std::string("\xff\xfe\xc3"), std::string("\r"),
                                   std::string("\0", 1), std::string(400, '\x01')}) {
    const Outcome outcome = run_leanstream(chat({}), {.input = bytes + "\nhello\n"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_GE(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2);
  }
  const Outcome endless = run_leanstream(chat({}), {.input = std::string(3 << 20, 'x')});
  EXPECT_EQ(endless.exit_code, 1);
  ASSERT_EQ(error_lines(endless).size(), 1u) << endless.err;
  EXPECT_THAT(error_lines(endless)[0], HasSubstr("the conversation does not fit"));
}

TEST(Chat, ends_quietly_when_its_reader_goes) {
  Process process(leanstream({"chat", "-m", tiny_chat_model(), "--ignore-eos", "--temp", "0"}),
                  {.input = "hello\nmore\n"});
  process.close_output();
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(error_lines(outcome).empty());
}

TEST(Chat, shows_a_prompt_on_a_terminal_and_leaves_at_its_end) {
  Process process(leanstream(chat({})), {.terminal = true});
  ASSERT_TRUE(process.wait_for_output("> "));
  process.type("hello\n");
  const auto prompts = [&] {
    size_t count = 0;
    for (size_t at = 0; (at = process.out().find("> ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  for (int i = 0; i < 200 && prompts() < 2; ++i)
    process.wait_for_output("no output says this", std::chrono::milliseconds(50));
  process.type("\x04");
  EXPECT_EQ(process.finish().exit_code, 0);
}

}  // namespace
}  // namespace leanstream::test
