#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "tools/leanstream/convert/convert.h"

namespace leanstream::cli {

// Runs what writes a model file, with a progress bar, stopping it on an interrupt; says what was written. An exit code.
int write_with_progress(const std::string& output,
                        const std::function<Result<convert::Report>(convert::Progress progress)>& write);

}  // namespace leanstream::cli
