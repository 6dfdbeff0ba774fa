// Standard output that is closed, full, a file or a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "command_line.h"

namespace leanstream::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> endless() {
  return leanstream({"run", "-m", tiny_model(), "-p", "zzqq", "--ignore-eos", "-c", "2048", "--temp", "0"});
}

TEST(Output, ends_quietly_when_its_reader_goes) {
  Process process(endless());
  ASSERT_TRUE(process.wait_for_output("zzqq"));
  process.close_output();
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.signal;
  EXPECT_THAT(outcome.err, Not(HasSubstr("error")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("prompt eval")));
}

TEST(Output, ends_quietly_behind_head) {
  std::string command;
  for (const std::string& argument : endless()) command += "'" + argument + "' ";
  const Outcome outcome = run_process({"/bin/bash", "-c", "set -o pipefail; " + command + "| head -c 10"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.size(), 10u);
}

TEST(Output, says_that_the_disk_is_full) {
  for (const std::vector<std::string>& arguments :
       {endless(), leanstream({"info", tiny_model()}), leanstream({"tokenize", "-m", tiny_model(), "-p", "a"}),
        leanstream({"plan", "-m", tiny_model()}), leanstream({"--version"}), leanstream({"run", "-h"})}) {
    SCOPED_TRACE(arguments[1]);
    const Outcome outcome = run_process(arguments, {.stdout_path = "/dev/full"});
    EXPECT_EQ(outcome.exit_code, 1);
    ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
    EXPECT_THAT(error_lines(outcome)[0], HasSubstr("No space left on device"));
  }
}

TEST(Output, fails_when_it_is_closed_from_the_start_and_harms_no_file) {
  const TemporaryFolder folder;
  const std::string stats = folder.path("stats.json");
  const Outcome outcome = run_leanstream(
      {"run", "-m", tiny_model(), "-p", "abcdef", "-n", "4", "--stats-json", stats, "--log-file", folder.path("log")},
      {.close_stdout = true});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(read_file(stats) + read_file(folder.path("log")), Not(HasSubstr("abcdef")));
}

TEST(Output, goes_to_a_file_byte_by_byte) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {"run", "-m", tiny_model(), "-p", "a", "-n", "8", "--temp", "0"};
  const std::string piped = run_leanstream(arguments).out;
  ASSERT_EQ(run_leanstream(arguments, {.stdout_path = folder.path("out")}).exit_code, 0);
  EXPECT_EQ(read_file(folder.path("out")), piped);
}

TEST(Output, draws_progress_on_a_terminal_only) {
  const std::vector<std::string> arguments =
      leanstream({"run", "-m", tiny_model(), "-p", "a", "-n", "2", "--temp", "0"});
  EXPECT_THAT(run_process(arguments).err, Not(HasSubstr("\r")));
  const Outcome terminal = run_process(arguments, {.terminal = true});
  EXPECT_EQ(terminal.exit_code, 0);
  EXPECT_THAT(terminal.out, HasSubstr("loading ["));
}

TEST(Output, asks_for_a_prompt_when_standard_input_is_a_terminal) {
  const Outcome outcome = run_process(leanstream({"run", "-m", tiny_model()}), {.terminal = true});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("no prompt"));
}

TEST(Log, goes_to_the_file_too_line_by_line_with_times) {
  const TemporaryFolder folder;
  const std::string file = folder.write("log", "before\n");
  const Outcome outcome = run_leanstream({"run", "-m", tiny_model(), "-p", "a", "-n", "2", "--log-file", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string log = read_file(file);
  EXPECT_THAT(log, ::testing::StartsWith("before\n20"));
  EXPECT_THAT(log, HasSubstr(" prompt eval "));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1 + std::count(outcome.err.begin(), outcome.err.end(), '\n'));
}

TEST(Log, refuses_a_file_in_a_folder_that_is_not_there_and_makes_none) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& command : {std::vector<std::string>{"run", "-m", tiny_model(), "-p", "a"},
                                                  {"info", tiny_model()},
                                                  {"plan", "-m", tiny_model()},
                                                  {"synth", "--preset", "tiny", "-o", folder.path("x")}}) {
    SCOPED_TRACE(command[0]);
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--log-file", folder.path("no/such/log")});
    const Outcome outcome = run_leanstream(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(error_lines(outcome), ElementsAre("leanstream: error: cannot open the log file " +
                                                  folder.path("no/such/log") + ": No such file or directory"));
    EXPECT_THAT(folder.names(), IsEmpty());
  }
}

TEST(Log, says_once_that_the_disk_under_its_file_is_full) {
  const auto full = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--log-file", "/dev/full"});
    return run_leanstream(arguments);
  };
  const Outcome outcome = full({"run", "-m", tiny_model(), "-p", "a", "-n", "2", "--temp", "0"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(error_lines(outcome),
              ElementsAre("leanstream: error: cannot write the log file /dev/full: No space left on device"));
  EXPECT_THAT(outcome.err, HasSubstr("prompt eval"));  // the work is done all the same
  EXPECT_EQ(full({"run", "-m", "/absent", "-p", "a"}).exit_code, 1);
}

TEST(Log, begins_on_a_fresh_line_where_it_shows_beside_the_text) {
  const std::vector<std::string> arguments =
      leanstream({"run", "-m", tiny_model(), "-p", "zz", "-n", "1", "--temp", "0", "-r", "never"});
  std::string command;
  for (const std::string& argument : arguments) command += "'" + argument + "' ";
  const TemporaryFolder folder;
  const std::string file = folder.path("both");
  const std::string text = run_process(arguments).out;
  ASSERT_NE(text.back(), '\n');
  const std::string expected = text + "\nleanstream: load";
  EXPECT_THAT(run_process({"/bin/bash", "-c", command + "2>&1"}).out, HasSubstr(expected));
  ASSERT_EQ(run_process({"/bin/bash", "-c", command + "> '" + file + "' 2>&1"}).exit_code, 0);
  EXPECT_THAT(read_file(file), HasSubstr(expected));
  const Outcome terminal = run_process(arguments, {.terminal = true});
  EXPECT_THAT(terminal.out, HasSubstr("\nleanstream: load"));
  EXPECT_THAT(terminal.out, Not(HasSubstr("\n\r\nleanstream: load")));
  // Apart, each stream has its own lines and no byte more.
  EXPECT_THAT(run_process(arguments).err, ::testing::StartsWith("leanstream: "));
  EXPECT_THAT(run_process(arguments).err, Not(HasSubstr("\n\n")));
  EXPECT_EQ(run_process({"/bin/bash", "-c", command + "--no-perf 2>&1 | tail -c " + std::to_string(text.size())}).out,
            text);
}

TEST(Output, survives_a_closed_standard_error) {
  std::string command = "exec 2>&- ; exec";
  for (const std::string& argument : leanstream({"run", "-m", tiny_model(), "-p", "a", "-n", "2"}))
    command += " '" + argument + "'";
  EXPECT_EQ(run_process({"/bin/bash", "-c", command}).exit_code, 0);
}

}  // namespace
}  // namespace leanstream::test
