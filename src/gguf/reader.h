#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "gguf/split.h"
#include "gguf/value.h"

namespace leanstream::gguf {

// A tensor's entry in the index: where its bytes are; nothing is read or mapped.
struct TensorInfo {
  std::string name;
  uint32_t type_id = 0;        // find_tensor_type knows it; find_weight_type where we compute with it
  std::vector<uint64_t> dims;  // 1 to 4, each at least 1, fastest first: dims[0] is the row length
  uint32_t file_index = 0;     // which of files() holds it
  uint64_t offset = 0;         // from the start of that file
  uint64_t size_bytes = 0;
  uint64_t element_count() const;
};

// The parsed head of a GGUF model: one file, or the set of a split. Immutable after open(), thread-safe.
// All counts, offsets and sizes were checked against the real file sizes: reading any tensor's bytes cannot run past
// its file. A file without tensors (a vocabulary) is valid.
class Model {
 public:
  // Parses and checks everything before any weight is read. `path` is the file, or the first of a split set
  // ("...-00001-of-00003.gguf"; the siblings are found by name). Errors name the file, and the key or tensor:
  // kNotFound, kIo, kMalformed, kUnsupported (a version or tensor type that we do not know), kInvalidArgument (a later
  // part of a split set; the message says which to open).
  static Result<Model> open(const std::string& path);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::vector<File>& files() const { return files_; }
  const std::string& path() const { return files_.front().path(); }
  uint64_t total_file_bytes() const;

  // Metadata in file order (of the first file). Keys are unique.
  const std::vector<std::pair<std::string, Value>>& metadata() const { return metadata_; }
  const Value* find(std::string_view key) const;  // nullptr when absent

  // Typed access. Absent: nullopt. Present with another type, or an integer out of range: kMalformed naming the key.
  Result<std::optional<uint64_t>> find_unsigned(std::string_view key) const;
  Result<std::optional<double>> find_float(std::string_view key) const;  // integers convert
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;
  Result<const Array*> find_array(std::string_view key, ValueType element_type) const;  // nullptr when absent

  // In file order, the files of a split set one after another. Names are unique.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;  // nullptr when absent

  // Reads part of a tensor: bytes [offset, offset + out.size()) of it. Errors name file and tensor.
  Status read_tensor(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const;

 private:
  Model() = default;

  Result<SplitKeys> add_file(File file);
  Status add_split_set(File first_file);
  Status wrong_type(std::string_view key, const Value& value, std::string_view expected) const;

  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<File> files_;
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> metadata_index_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

}  // namespace leanstream::gguf
