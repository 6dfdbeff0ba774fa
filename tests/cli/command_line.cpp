#include "command_line.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace leanstream::test {
namespace {

namespace fs = std::filesystem;

// Tests run at the same time: each writes to a name of its own and renames, so that all find a whole file.
std::string synthesised(const std::string& preset) {
  const fs::path binary = LEANSTREAM_BINARY;
  const fs::path model = binary.parent_path() / ("cli-test-" + preset + ".gguf");
  std::error_code error;
  if (fs::exists(model, error) && fs::last_write_time(model, error) >= fs::last_write_time(binary, error)) return model;
  const std::string fresh = model.string() + "." + std::to_string(getpid());
  const Outcome made = run_process({LEANSTREAM_BINARY, "synth", "--preset", preset, "--type", "q8_0", "-o", fresh});
  if (made.exit_code != 0) return "";
  fs::rename(fresh, model, error);
  return model;
}

}  // namespace

std::vector<std::string> leanstream(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LEANSTREAM_BINARY);
  return arguments;
}

Outcome run_leanstream(std::vector<std::string> arguments, const ProcessOptions& options) {
  return run_process(leanstream(std::move(arguments)), options);
}

std::string tiny_model() {
  return synthesised("tiny");
}
std::string tiny_chat_model() {
  return synthesised("tiny-qwen2");
}
std::string demo_model() {
  return LEANSTREAM_SOURCE_DIR "/models/lean-docs-reglu-28m-Q8_0.gguf";
}
bool have_demo_model() {
  return fs::exists(demo_model());
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "leanstream-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& contents) const {
  std::ofstream(path(name), std::ios::binary) << contents;
  return path(name);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename());
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> error_lines(const Outcome& outcome) {
  std::vector<std::string> lines;
  std::istringstream text(outcome.err);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("leanstream: error: ")) lines.push_back(line);
  return lines;
}

}  // namespace leanstream::test
