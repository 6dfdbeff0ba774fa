#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leanstream::gguf {

// The value types of the file format, with its numbers.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr uint32_t kValueTypeCount = 13;

// "uint8", "string", ...; `type` is one of the enumerators.
const char* value_type_name(ValueType type);

// Strings back to back in one allocation: a vocabulary of 262,144 tokens is two vectors, not 262,144 objects.
// Views stay valid until the next push_back.
class StringList {
 public:
  StringList() = default;
  StringList(std::initializer_list<std::string_view> strings) {
    for (std::string_view s : strings) push_back(s);
  }

  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void push_back(std::string_view s) { bytes_.append(s), ends_.push_back(bytes_.size()); }
  // Appends a string of `size` bytes and returns them, for the caller to fill.
  char* push_back_uninitialised(size_t size) {
    bytes_.resize(bytes_.size() + size);
    ends_.push_back(bytes_.size());
    return bytes_.data() + bytes_.size() - size;
  }
  void shrink_to_fit() { bytes_.shrink_to_fit(), ends_.shrink_to_fit(); }
  bool operator==(const StringList&) const = default;

 private:
  std::string bytes_;
  std::vector<size_t> ends_;  // string i is bytes_[ends_[i - 1], ends_[i])
};

// An array of one element type. Numbers of every width are widened; which member is filled follows `type`.
struct Array {
  ValueType type = ValueType::kUint8;
  std::vector<uint64_t> unsigneds;  // kUint8/16/32/64, kBool
  std::vector<int64_t> signeds;     // kInt8/16/32/64
  std::vector<double> floats;       // kFloat32/64
  StringList strings;               // kString
  std::vector<Array> arrays;        // kArray

  size_t size() const;
  bool operator==(const Array&) const = default;
};

struct Value {
  ValueType type = ValueType::kUint8;
  std::variant<uint64_t, int64_t, double, std::string, Array> value;  // widened like Array's elements

  bool operator==(const Value&) const = default;
};

// The integer in `value`, of any width; nullopt for a negative one and for another type.
std::optional<uint64_t> as_unsigned(const Value& value);

}  // namespace leanstream::gguf
