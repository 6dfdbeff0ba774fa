#include "prompt_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "output.h"
#include "text.h"

namespace leanstream::cli {
namespace {

constexpr size_t kLongestPromptBytes = size_t{1} << 30;

Result<std::string> read_to_end(int descriptor, const std::string& name) {
  std::string text;
  size_t used = 0;
  for (;;) {
    if (text.size() - used < 65536) text.resize(text.size() * 2 + 65536);
    const ssize_t count = read(descriptor, text.data() + used, text.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("cannot read " + name, errno);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (used > kLongestPromptBytes) return invalid_argument("cannot take " + name + ": it is longer than 1 GiB");
  }
  text.resize(used);
  return text;
}

}  // namespace

void add_prompt_options(Flags& flags, PromptOptions& options) {
  flags.text("-p,--prompt", "TEXT", options.text, "The text, with \\n \\r \\t \\' \\\" \\\\ \\xHH resolved");
  flags.text("-f,--file", "FILE", options.file, "The text is this file's bytes");
  flags.text("--binary-file", "FILE", options.binary_file, "The same, a final newline kept (also -bf)");
  flags.flag("-e,--escape,!--no-escape", options.escapes, "Resolve escapes in -p (default); --no-escape: do not");
}

Status check_usage(const PromptOptions& options) {
  const int sources = options.text.has_value() + options.file.has_value() + options.binary_file.has_value();
  if (sources > 1) return invalid_argument("more than one prompt: give one of -p, -f and --binary-file");
  if (sources == 0 && stdin_is_terminal())
    return invalid_argument("no prompt: give -p TEXT or -f FILE, or pipe it into standard input");
  return {};
}

Result<std::string> read_prompt(const PromptOptions& options, FinalNewline final_newline) {
  if (options.text) return options.escapes ? unescaped(*options.text) : *options.text;
  if (options.binary_file) return read_whole_file(*options.binary_file);
  Result<std::string> text =
      options.file ? read_whole_file(*options.file) : read_to_end(STDIN_FILENO, "standard input");
  if (text.ok() && final_newline == FinalNewline::kRemove) remove_final_newline(*text);
  return text;
}

Result<std::string> read_whole_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return io_error("cannot open " + path, errno);
  Result<std::string> text = read_to_end(descriptor, path);
  close(descriptor);
  return text;
}

void remove_final_newline(std::string& text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
}

}  // namespace leanstream::cli
