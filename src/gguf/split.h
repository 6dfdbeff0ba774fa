#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gguf/value.h"

namespace leanstream::gguf {

// What a file says of the split set that it is part of. A file without the keys is whole: part 0 of 1.
struct SplitKeys {
  uint64_t number = 0;  // from 0
  uint64_t count = 1;
  std::optional<uint64_t> tensor_count;  // of all parts together
};

// Errors: kMalformed for a mistyped or impossible key.
Result<SplitKeys> read_split_keys(const std::vector<std::pair<std::string, Value>>& metadata);

// The paths of all parts, by the name of the first ("<prefix>-00001-of-00003.gguf") and its keys.
// Errors: kInvalidArgument naming the path to open where `keys` is not of the first part; kMalformed where the name
// does not follow the pattern or disagrees with the keys.
Result<std::vector<std::string>> split_paths(const std::string& first_path, const SplitKeys& keys);

}  // namespace leanstream::gguf
