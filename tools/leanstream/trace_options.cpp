#include "trace_options.h"

#include "handles.h"

namespace leanstream::cli {

void add_trace_options(Flags& flags, TraceOptions& options) {
  flags.group("Recording");
  flags.text("--trace", "FILE", options.file,
             "Record which neurons each position demands, for\ncache-sim (docs/trace.md): all of them, or");
  flags.number("--trace-top", "F", options.top, 0, 0.9999,
               "the share F of each layer that matters most, as 0.2\n(default 0: all)");
}

Status check_usage(const TraceOptions& options) {
  if (options.top != 0 && options.file.empty())
    return invalid_argument("--trace-top says what to record, --trace FILE where: give both");
  return {};
}

Status start_trace(leanstream_session& session, const TraceOptions& options) {
  if (options.file.empty()) return {};
  return checked([&](leanstream_error* e) {
    return leanstream_session_start_trace(&session, options.file.c_str(), options.top, e);
  });
}

Status finish_trace(leanstream_session& session, const TraceOptions& options) {
  if (options.file.empty()) return {};
  return checked([&](leanstream_error* e) { return leanstream_session_finish_trace(&session, e); });
}

}  // namespace leanstream::cli
