// The commands that README.md and docs/cli.md show work as they stand, one after another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "command_line.h"

namespace leanstream::test {
namespace {

// The lines between "```sh" (or another opening) and "```" of a page, all blocks together.
std::vector<std::string> lines_of_blocks(const std::string& page, const std::string& opening) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(std::string(LEANSTREAM_SOURCE_DIR "/") + page));
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      inside = !inside && line == opening;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  return lines;
}

// In the repository's root, with the built program as `leanstream`.
Outcome run_in_shell(const std::string& script) {
  const std::string prepare = "cd '" LEANSTREAM_SOURCE_DIR "' && PATH=\"" +
                              std::filesystem::path(LEANSTREAM_BINARY).parent_path().string() + ":$PATH\"\n";
  return run_process({"/bin/bash", "-c", prepare + script}, {.stdin_path = "/dev/null"});
}

TEST(Documentation, the_commands_of_the_readme_work_when_pasted_in_order) {
  if (!have_demo_model()) GTEST_SKIP() << demo_model() << " is not there";
  std::string script = "set -e\n";
  size_t commands = 0;
  for (const std::string& line : lines_of_blocks("README.md", "```sh")) {
    if (line.starts_with("tools/")) continue;  // sets the machine up
    commands += line.starts_with("$leanstream ");
    script += line.starts_with("leanstream=") ? "leanstream=leanstream\n" : line + "\n";
  }
  EXPECT_GE(commands, 5u);
  const Outcome outcome = run_in_shell(script);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(Documentation, the_examples_of_the_manual_end_as_they_are_shown) {
  if (!have_demo_model()) GTEST_SKIP() << demo_model() << " is not there";
  const std::vector<std::string> lines = lines_of_blocks("docs/cli.md", "```");
  size_t examples = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("$ ")) continue;
    bool fails = false;
    for (size_t j = i + 1; j < lines.size() && !lines[j].starts_with("$ "); ++j)
      fails |= lines[j].starts_with("leanstream: error: ");
    const Outcome outcome = run_in_shell(lines[i].substr(2));
    EXPECT_EQ(outcome.exit_code, fails ? 1 : 0) << lines[i] << "\n" << outcome.err;
    ++examples;
  }
  EXPECT_GE(examples, 8u);
}

}  // namespace
}  // namespace leanstream::test
