#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "flags.h"

namespace leanstream::cli {

// Where the text comes from: -p, -f, --binary-file, or else standard input when it is no terminal.
struct PromptOptions {
  std::optional<std::string> text;
  std::optional<std::string> file;
  std::optional<std::string> binary_file;
  bool escapes = true;  // resolve \n and the like in -p
};

// What becomes of the newline that editors put at the end of a file.
enum class FinalNewline { kRemove, kKeep };

void add_prompt_options(Flags& flags, PromptOptions& options);

// Errors: kInvalidArgument when there is no source or more than one.
Status check_usage(const PromptOptions& options);

// The bytes, NUL and invalid UTF-8 included. The rule on the final newline is for files and standard input.
Result<std::string> read_prompt(const PromptOptions& options, FinalNewline final_newline);

// A whole file, which may be a pipe. Errors: kNotFound, kIo, kInvalidArgument above 1 GiB.
Result<std::string> read_whole_file(const std::string& path);

void remove_final_newline(std::string& text);

}  // namespace leanstream::cli
