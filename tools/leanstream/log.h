#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "flags.h"
#include "leanstream/leanstream.h"

namespace leanstream::cli {

// Lines on standard error, each beginning "leanstream: ", and the same lines with their time in --log-file.
struct LogOptions {
  bool verbose = false;
  bool disabled = false;   // only errors reach standard error
  uint32_t verbosity = 3;  // llama.cpp's scale: 0 errors only, 3 information, 4 and more debugging
  std::string file;
};

void add_log_options(Flags& flags, LogOptions& options);

// Until it is called, everything from information up goes to standard error. `inputs`: the files that the command
// reads, which a log must not be written into. Errors: kIo for the file, kInvalidArgument where it is an input.
Status start_log(const LogOptions& options, const std::vector<std::string>& inputs);

// The exit code of a command that ended with `exit_code`. When the log file could not be written, says so, and a
// success becomes a failure.
int finish_log(int exit_code);

// Standard output says whether the text on it ends inside a line. Where both streams show in one place, the next line
// of the log then begins on a fresh one; standard output itself gets no byte for that.
void set_text_inside_line(bool inside);

void log_debug(const std::string& line);
void log_info(const std::string& line);
void log_note(const std::string& line);  // "note: ...": something asked for that has no effect

// "error: ..." and the exit code that goes with it: 130 for a cancelled call, else 1.
int report_failure(const Status& failure);
// "error: ...", 2.
int report_usage(const std::string& sentence);

// For leanstream_runtime_params.log.
void log_from_library(leanstream_log_level level, const char* text, size_t length, void* user);

}  // namespace leanstream::cli
