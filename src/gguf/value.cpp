#include "gguf/value.h"

namespace leanstream::gguf {

const char* value_type_name(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
      return "uint8";
    case ValueType::kInt8:
      return "int8";
    case ValueType::kUint16:
      return "uint16";
    case ValueType::kInt16:
      return "int16";
    case ValueType::kUint32:
      return "uint32";
    case ValueType::kInt32:
      return "int32";
    case ValueType::kFloat32:
      return "float32";
    case ValueType::kBool:
      return "bool";
    case ValueType::kString:
      return "string";
    case ValueType::kArray:
      return "array";
    case ValueType::kUint64:
      return "uint64";
    case ValueType::kInt64:
      return "int64";
    case ValueType::kFloat64:
      return "float64";
  }
  return "unknown";
}

size_t Array::size() const {
  return unsigneds.size() + signeds.size() + floats.size() + strings.size() + arrays.size();  // all but one are empty
}

std::optional<uint64_t> as_unsigned(const Value& value) {
  if (value.type == ValueType::kBool) return std::nullopt;
  if (const auto* u = std::get_if<uint64_t>(&value.value)) return *u;
  if (const auto* i = std::get_if<int64_t>(&value.value); i != nullptr && *i >= 0) return static_cast<uint64_t>(*i);
  return std::nullopt;
}

}  // namespace leanstream::gguf
