#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "trace/header.h"

namespace leanstream::cli {

// The MLP of a model file in pieces of `neurons_per_piece` neurons: gate rows, up rows and parts of the down columns.
// The last piece of a layer may be smaller. Errors: those of opening the file; kUnsupported for one without an MLP per
// layer.
Result<trace::Header> model_pieces(const std::string& path, uint32_t neurons_per_piece);

}  // namespace leanstream::cli
