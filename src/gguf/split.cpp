#include "gguf/split.h"

#include <charconv>
#include <cstdio>
#include <string_view>

namespace leanstream::gguf {
namespace {

constexpr uint64_t kMaxParts = 99999;  // five digits in the name

// "<prefix>-00002-of-00005.gguf"
struct SplitName {
  std::string prefix;
  uint64_t number = 0;  // from 1
  uint64_t count = 0;
};

std::optional<uint64_t> five_digits(std::string_view s) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), number);
  if (s.size() != 5 || error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return number;
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kPattern = "-NNNNN-of-NNNNN.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kPattern.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  const std::optional<uint64_t> number = five_digits(tail.substr(1, 5));
  const std::optional<uint64_t> count = five_digits(tail.substr(10, 5));
  if (!number || !count) return std::nullopt;
  return SplitName{std::string(path.substr(0, path.size() - kPattern.size())), *number, *count};
}

std::string split_path(const std::string& prefix, uint64_t number, uint64_t count) {
  char tail[64];
  std::snprintf(tail, sizeof tail, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(count));
  return prefix + tail;
}

// The value of an integer key of any width; nullopt when absent.
Result<std::optional<uint64_t>> find_integer(const std::vector<std::pair<std::string, Value>>& metadata,
                                             std::string_view wanted) {
  for (const auto& [key, value] : metadata) {
    if (key != wanted) continue;
    const std::optional<uint64_t> number = as_unsigned(value);
    if (!number) return malformed("metadata key '" + key + "' is not a count");
    return number;
  }
  return std::optional<uint64_t>();
}

}  // namespace

Result<SplitKeys> read_split_keys(const std::vector<std::pair<std::string, Value>>& metadata) {
  const Result<std::optional<uint64_t>> number = find_integer(metadata, "split.no");
  const Result<std::optional<uint64_t>> count = find_integer(metadata, "split.count");
  const Result<std::optional<uint64_t>> tensor_count = find_integer(metadata, "split.tensors.count");
  for (const auto* result : {&number, &count, &tensor_count}) {
    if (!result->ok()) return result->status();
  }
  SplitKeys keys;
  keys.number = (*number).value_or(0);
  keys.count = (*count).value_or(1);
  keys.tensor_count = *tensor_count;
  if (keys.count == 0) keys.count = 1;  // written by some tools for a whole file
  if (keys.count > kMaxParts || keys.number >= keys.count) {
    return malformed("metadata says part " + std::to_string(keys.number) + " (counted from 0) of " +
                     std::to_string(keys.count) + " (keys 'split.no' and 'split.count')");
  }
  return keys;
}

Result<std::vector<std::string>> split_paths(const std::string& first_path, const SplitKeys& keys) {
  if (keys.count == 1) return std::vector{first_path};
  const std::string part = "part " + std::to_string(keys.number + 1) + " of " + std::to_string(keys.count);
  const std::optional<SplitName> name = parse_split_name(first_path);
  if (!name) {
    return malformed(first_path + ": this is " + part + " of a split model, but its name does not end in \"" +
                     split_path("", keys.number + 1, keys.count) + "\", so the other parts cannot be found");
  }
  if (name->number != keys.number + 1 || name->count != keys.count) {
    return malformed(first_path + ": its name says part " + std::to_string(name->number) + " of " +
                     std::to_string(name->count) + ", its metadata " + part);
  }
  if (keys.number != 0) {
    return invalid_argument(first_path + ": this is " + part +
                            "; open the first: " + split_path(name->prefix, 1, keys.count));
  }
  std::vector<std::string> paths;
  for (uint64_t i = 1; i <= keys.count; ++i) paths.push_back(split_path(name->prefix, i, keys.count));
  return paths;
}

}  // namespace leanstream::gguf
