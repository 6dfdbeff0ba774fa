#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace leanstream::gguf {

// The value types of the file format, with its numbers.
enum class ValueType : uint32_t {
  kUint8 = 0, kInt8 = 1, kUint16 = 2, kInt16 = 3, kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7,
  kString = 8, kArray = 9, kUint64 = 10, kInt64 = 11, kFloat64 = 12,
};
const char* value_type_name(ValueType type);

// An array of one element type. Numbers of every width are widened; which vector is filled follows `type`.
struct Array {
  ValueType type = ValueType::kUint8;
  std::vector<uint64_t> unsigneds;    // kUint8/16/32/64, kBool
  std::vector<int64_t> signeds;       // kInt8/16/32/64
  std::vector<double> floats;         // kFloat32/64
  std::vector<std::string> strings;   // kString
  std::vector<Array> arrays;          // kArray, at most 4 deep
  size_t size() const;
};

struct Value {
  ValueType type = ValueType::kUint8;
  std::variant<uint64_t, int64_t, double, std::string, Array> value;  // widened like Array's elements
};

// A tensor's entry in the index: where its bytes are; nothing is read or mapped.
struct TensorInfo {
  std::string name;
  uint32_t type_id = 0;              // WeightType where find_weight_type knows it
  std::vector<uint64_t> dims;        // 1 to 4, fastest first: dims[0] is the row length
  uint32_t file_index = 0;           // which of files() holds it
  uint64_t offset = 0;               // from the start of that file
  uint64_t size_bytes = 0;
  uint64_t element_count() const;
};

// The parsed head of a GGUF model: one file, or the set of a split. Immutable after open(), thread-safe.
// All counts, offsets and sizes were checked against the real file sizes: reading any tensor's bytes cannot run past
// its file.
class Model {
 public:
  // Parses and checks everything before any weight is read. `path` is the file, or the first of a split set
  // ("...-00001-of-00003.gguf"; the siblings are found by name). Errors name the file, and the key or tensor:
  // kNotFound, kIo, kMalformed, kUnsupported (a version or tensor type we do not know).
  static Result<Model> open(const std::string& path);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::vector<File>& files() const { return files_; }
  uint64_t total_file_bytes() const;

  // Metadata in file order (of the first file).
  const std::vector<std::pair<std::string, Value>>& metadata() const { return metadata_; }
  const Value* find(std::string_view key) const;  // nullptr when absent

  // Typed access. Absent: nullopt. Present with another type, or an integer out of range: kMalformed naming the key.
  Result<std::optional<uint64_t>> find_unsigned(std::string_view key) const;
  Result<std::optional<double>> find_float(std::string_view key) const;  // integers convert
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;
  Result<const Array*> find_array(std::string_view key, ValueType element_type) const;  // nullptr when absent

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;  // nullptr when absent

  // Reads part of a tensor: bytes [offset, offset + out.size()) of it. Errors name file and tensor.
  Status read_tensor(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const;

 private:
  friend class Parser;
  Model() = default;

  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<File> files_;
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> metadata_index_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

}  // namespace leanstream::gguf
