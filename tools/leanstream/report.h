#pragma once

#include <string>

#include "base/status.h"
#include "leanstream/leanstream.h"

namespace leanstream::cli {

// Everything that is told about a run when it is over.
struct RunFigures {
  leanstream_stats stats;
  leanstream_runtime_info runtime;
  leanstream_stop_reason reason;
};

Result<RunFigures> collect_figures(const leanstream_runtime& runtime, const leanstream_session& session,
                                   leanstream_stop_reason reason);

// Some lines on standard error.
void log_timings(const RunFigures& figures);

// One object with the keys that docs/cli.md lists, and a newline.
std::string stats_json(const RunFigures& figures);

// Whether write_file can be expected to succeed, before hours are spent on what it will write; leaves nothing behind.
// An empty path is none. Errors: kIo, kInvalidArgument for a folder or for `model`, the file that the command reads.
Status check_output_file(const std::string& path, const std::string& model);

// Appears under its name only when complete. A path that is no regular file (/dev/stdout, a pipe) is written to as it
// is. Errors: kIo.
Status write_file(const std::string& path, const std::string& contents);

}  // namespace leanstream::cli
