#pragma once

#include <string>

#include "base/status.h"
#include "tools/leanstream/convert/convert.h"

namespace leanstream::convert {

struct PackParams {
  std::string input;  // a GGUF file, or the first of a split set; becomes one file
  std::string output;
  Progress progress = {};  // may be empty; its bytes are those read to take the source's checksum, and those written
  uint64_t strip_bytes = uint64_t{64} << 20;  // of down's columns held at once, or one tile's
};

// Writes `input` as an exact pack (docs/format.md): the MLP of every layer in tiles, everything else as it is. Holds at
// most about 100 MB. Errors as Model::open's and Writer's; kInvalidArgument where the input is a pack already or is the
// output too; kUnsupported for a model without gate, up and down in every layer, or with types that we do not compute
// with; kIo when the input changes meanwhile.
Result<Report> pack(const PackParams& params);

// What check_pack read.
struct PackCheck {
  uint64_t tiles = 0;
  uint64_t bytes = 0;  // of tiles
};

// Reads every tile of a pack and compares it with its checksum. Errors: kMalformed naming the first tile that differs
// and how many do, or that the file is no pack; and as Model::open's.
Result<PackCheck> check_pack(const std::string& path, const Progress& progress);

}  // namespace leanstream::convert
