#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "gguf/reader.h"

namespace leanstream::gguf {

// The head of one GGUF file: everything before its tensors' bytes.
struct Head {
  uint32_t version = 0;
  uint64_t alignment = 32;
  std::vector<std::pair<std::string, Value>> metadata;  // keys are unique
  std::vector<TensorInfo> tensors;                      // inside the file; names not yet compared
};

// Errors (kIo, kMalformed, kUnsupported) name the key or tensor, not the file. The file's bytes are untrusted: nothing
// is allocated that the file is not large enough to fill.
Result<Head> parse_head(const File& file, uint32_t file_index);

}  // namespace leanstream::gguf
