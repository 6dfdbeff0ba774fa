#pragma once

#include <string>

#include "base/status.h"
#include "flags.h"
#include "leanstream/leanstream.h"

namespace leanstream::cli {

// What to record of a session, if anything.
struct TraceOptions {
  std::string file;  // "" = nothing
  double top = 0;    // share of the neurons of each layer; 0 = all
};

void add_trace_options(Flags& flags, TraceOptions& options);
Status check_usage(const TraceOptions& options);

// Do nothing where nothing is to be recorded.
Status start_trace(leanstream_session& session, const TraceOptions& options);
Status finish_trace(leanstream_session& session, const TraceOptions& options);

}  // namespace leanstream::cli
