// Standard output that is closed, full, a file or a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command_line.h"

namespace leanstream::test {
namespace {

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

TEST(Output, survives_a_closed_standard_error) {
  std::string command = "exec 2>&- ; exec";
  for (const std::string& argument : leanstream({"run", "-m", tiny_model(), "-p", "a", "-n", "2"}))
    command += " '" + argument + "'";
  EXPECT_EQ(run_process({"/bin/bash", "-c", command}).exit_code, 0);
}

}  // namespace
}  // namespace leanstream::test
