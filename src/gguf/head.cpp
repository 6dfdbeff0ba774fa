#include "gguf/head.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_set>

#include "base/checked.h"
#include "gguf/byte_reader.h"
#include "gguf/tensor_type.h"

namespace leanstream::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF's numbers are read as they stand");

constexpr uint64_t kMaxNameBytes = 65535;  // of keys by the format; of tensor names by us
constexpr uint32_t kMaxDims = 4;
constexpr uint32_t kMaxArrayDepth = 4;
constexpr uint64_t kMaxAlignment = uint64_t{2} << 20;

// The least a key with its value, and a tensor's entry, take: empty names, one byte, one dimension.
constexpr uint64_t kMinMetadataBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// The bytes of one element; of strings and arrays, the least.
uint64_t min_element_bytes(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
    case ValueType::kString:
      return 8;
    case ValueType::kArray:
      return 12;
  }
  return 1;
}

ValueType read_value_type(ByteReader& in) {
  const uint32_t id = in.number<uint32_t>();
  if (id < kValueTypeCount) return static_cast<ValueType>(id);
  in.fail(malformed("value type " + std::to_string(id) + " does not exist"));
  return ValueType::kUint8;
}

template <typename Stored, typename Wide>
void read_numbers(ByteReader& in, uint64_t count, std::vector<Wide>& out) {
  std::array<Stored, 1024> chunk;
  out.reserve(count);
  while (count > 0 && in.ok()) {
    const size_t n = std::min<uint64_t>(count, chunk.size());
    in.read(std::as_writable_bytes(std::span(chunk).first(n)));
    out.insert(out.end(), chunk.begin(), chunk.begin() + n);
    count -= n;
  }
}

void check_bool(ByteReader& in, uint64_t value) {
  if (value > 1) in.fail(malformed("a bool of value " + std::to_string(value)));
}

Array read_array(ByteReader& in, uint32_t depth) {
  Array array;
  array.type = read_value_type(in);
  const uint64_t count = in.number<uint64_t>();
  if (depth > kMaxArrayDepth) {
    in.fail(unsupported("arrays nested more than " + std::to_string(kMaxArrayDepth) + " deep"));
  }
  if (!in.can_hold(count, min_element_bytes(array.type),
                   "an array of " + std::to_string(count) + " x " + value_type_name(array.type))) {
    return {};
  }
  switch (array.type) {
    case ValueType::kUint8:
      read_numbers<uint8_t>(in, count, array.unsigneds);
      break;
    case ValueType::kUint16:
      read_numbers<uint16_t>(in, count, array.unsigneds);
      break;
    case ValueType::kUint32:
      read_numbers<uint32_t>(in, count, array.unsigneds);
      break;
    case ValueType::kUint64:
      read_numbers<uint64_t>(in, count, array.unsigneds);
      break;
    case ValueType::kInt8:
      read_numbers<int8_t>(in, count, array.signeds);
      break;
    case ValueType::kInt16:
      read_numbers<int16_t>(in, count, array.signeds);
      break;
    case ValueType::kInt32:
      read_numbers<int32_t>(in, count, array.signeds);
      break;
    case ValueType::kInt64:
      read_numbers<int64_t>(in, count, array.signeds);
      break;
    case ValueType::kFloat32:
      read_numbers<float>(in, count, array.floats);
      break;
    case ValueType::kFloat64:
      read_numbers<double>(in, count, array.floats);
      break;
    case ValueType::kBool:
      read_numbers<uint8_t>(in, count, array.unsigneds);
      for (uint64_t value : array.unsigneds) check_bool(in, value);
      break;
    case ValueType::kString:
      for (uint64_t i = 0; i < count && in.ok(); ++i) {
        const uint64_t length = in.string_length();
        in.read(std::as_writable_bytes(std::span(array.strings.push_back_uninitialised(length), length)));
      }
      array.strings.shrink_to_fit();
      break;
    case ValueType::kArray:
      for (uint64_t i = 0; i < count && in.ok(); ++i) array.arrays.push_back(read_array(in, depth + 1));
      break;
  }
  return array;
}

Value read_value(ByteReader& in) {
  Value value;
  value.type = read_value_type(in);
  switch (value.type) {
    case ValueType::kUint8:
      value.value = uint64_t{in.number<uint8_t>()};
      break;
    case ValueType::kUint16:
      value.value = uint64_t{in.number<uint16_t>()};
      break;
    case ValueType::kUint32:
      value.value = uint64_t{in.number<uint32_t>()};
      break;
    case ValueType::kUint64:
      value.value = in.number<uint64_t>();
      break;
    case ValueType::kInt8:
      value.value = int64_t{in.number<int8_t>()};
      break;
    case ValueType::kInt16:
      value.value = int64_t{in.number<int16_t>()};
      break;
    case ValueType::kInt32:
      value.value = int64_t{in.number<int32_t>()};
      break;
    case ValueType::kInt64:
      value.value = in.number<int64_t>();
      break;
    case ValueType::kFloat32:
      value.value = double{in.number<float>()};
      break;
    case ValueType::kFloat64:
      value.value = in.number<double>();
      break;
    case ValueType::kBool:
      value.value = uint64_t{in.number<uint8_t>()};
      check_bool(in, std::get<uint64_t>(value.value));
      break;
    case ValueType::kString:
      value.value = in.string();
      break;
    case ValueType::kArray:
      value.value = read_array(in, 1);
      break;
  }
  return value;
}

// A key or a tensor's name.
std::string read_name(ByteReader& in) {
  const uint64_t length = in.string_length();
  if (length > kMaxNameBytes) in.fail(malformed("a name of " + std::to_string(length) + " bytes"));
  if (!in.ok()) return {};
  std::string name(length, '\0');
  in.read(std::as_writable_bytes(std::span(name)));
  return name;
}

Status check_magic(ByteReader& in) {
  std::string magic(4, '\0');
  in.read(std::as_writable_bytes(std::span(magic)));
  if (!in.ok()) return malformed("not a GGUF file: it is shorter than four bytes");
  if (magic == "GGUF") return {};
  if (magic == "FUGG") return unsupported("a big-endian GGUF file; only little-endian ones are supported");
  if (magic == std::string(4, '\0')) {
    return malformed("not a GGUF file: it begins with zeros (an unfinished download or copy?)");
  }
  std::string shown;
  for (char c : magic) shown += c >= 0x20 && c < 0x7f ? c : '?';
  return malformed("not a GGUF file: it begins with \"" + shown + "\", not \"GGUF\"");
}

Status check_version(uint32_t version) {
  if (version == 2 || version == 3) return {};
  if ((version & 0xffff) == 0 && version != 0) {
    return unsupported("a big-endian GGUF file; only little-endian ones are supported");
  }
  return unsupported("GGUF version " + std::to_string(version) + "; versions 2 and 3 are supported");
}

Status read_metadata(ByteReader& in, uint64_t count, Head& head) {
  std::unordered_set<std::string> keys;
  for (uint64_t i = 0; i < count; ++i) {
    std::string key = read_name(in);
    if (!in.ok()) return in.status().with_context("metadata key " + std::to_string(i));
    Value value = read_value(in);
    if (!in.ok()) return in.status().with_context("metadata key '" + key + "'");
    if (!keys.insert(key).second) return malformed("metadata key '" + key + "' is given twice");
    head.metadata.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

Status read_alignment(Head& head) {
  for (const auto& [key, value] : head.metadata) {
    if (key != "general.alignment") continue;
    if (value.type != ValueType::kUint32) {
      return malformed("metadata key 'general.alignment' is of type " + std::string(value_type_name(value.type)) +
                       ", not uint32");
    }
    head.alignment = std::get<uint64_t>(value.value);
    if (!std::has_single_bit(head.alignment) || head.alignment > kMaxAlignment) {
      return malformed("metadata key 'general.alignment' is " + std::to_string(head.alignment) +
                       ", not a power of two up to " + std::to_string(kMaxAlignment));
    }
  }
  return {};
}

// The bytes of a tensor of these dimensions, each step checked.
Result<uint64_t> tensor_bytes(const TensorType& type, const std::vector<uint64_t>& dims) {
  if (dims[0] % type.block_elements != 0) {
    return malformed("rows of " + std::to_string(dims[0]) + " elements are not whole blocks of " +
                     std::to_string(type.block_elements) + " (" + type.name + ")");
  }
  std::optional<uint64_t> elements = 1;
  std::optional<uint64_t> bytes = checked_mul(dims[0] / type.block_elements, type.block_bytes);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return malformed("dimension " + std::to_string(i) + " is 0");
    if (elements) elements = checked_mul(*elements, dims[i]);
    if (bytes && i > 0) bytes = checked_mul(*bytes, dims[i]);
  }
  if (!elements || !bytes) return malformed("its dimensions multiply to more than 64 bits");
  return *bytes;
}

// One entry of the tensor list. Its offset still counts from the start of the tensors' bytes.
Status read_tensor_info(ByteReader& in, uint64_t alignment, TensorInfo& tensor) {
  const uint32_t n_dims = in.number<uint32_t>();
  if (in.ok() && (n_dims < 1 || n_dims > kMaxDims)) {
    return malformed(std::to_string(n_dims) + " dimensions; 1 to " + std::to_string(kMaxDims) + " are possible");
  }
  for (uint32_t i = 0; i < n_dims; ++i) tensor.dims.push_back(in.number<uint64_t>());
  tensor.type_id = in.number<uint32_t>();
  tensor.offset = in.number<uint64_t>();
  if (!in.ok()) return in.status();

  const TensorType* type = find_tensor_type(tensor.type_id);
  if (type == nullptr) return unsupported("type id " + std::to_string(tensor.type_id) + " is not supported");
  Result<uint64_t> bytes = tensor_bytes(*type, tensor.dims);
  if (!bytes.ok()) return bytes.status();
  tensor.size_bytes = *bytes;
  if (tensor.offset % alignment != 0) {
    return malformed("offset " + std::to_string(tensor.offset) + " is not a multiple of the alignment, " +
                     std::to_string(alignment));
  }
  return {};
}

Status read_tensor_infos(ByteReader& in, uint64_t count, uint32_t file_index, Head& head) {
  for (uint64_t i = 0; i < count; ++i) {
    TensorInfo tensor;
    tensor.file_index = file_index;
    tensor.name = read_name(in);
    if (!in.ok()) return in.status().with_context("tensor " + std::to_string(i));
    if (Status s = read_tensor_info(in, head.alignment, tensor); !s.ok()) {
      return s.with_context("tensor '" + tensor.name + "'");
    }
    head.tensors.push_back(std::move(tensor));
  }
  return {};
}

// Turns offsets into offsets in the file, and makes sure that the file holds every tensor whole.
Status place_tensors(uint64_t head_bytes, uint64_t file_bytes, Head& head) {
  if (head.tensors.empty()) return {};
  const uint64_t data_begin = align_up(head_bytes, head.alignment);
  uint64_t expected_bytes = 0;
  const TensorInfo* last = nullptr;
  for (TensorInfo& tensor : head.tensors) {
    const std::optional<uint64_t> begin = checked_add(data_begin, tensor.offset);
    const std::optional<uint64_t> end = begin ? checked_add(*begin, tensor.size_bytes) : std::nullopt;
    if (!end) return malformed("tensor '" + tensor.name + "': its offset and size add up to more than 64 bits");
    tensor.offset = *begin;
    if (*end > expected_bytes) {
      expected_bytes = *end;
      last = &tensor;
    }
  }
  if (expected_bytes > file_bytes) {
    return malformed("the file is cut short: " + std::to_string(expected_bytes) + " bytes expected (tensor '" +
                     last->name + "' ends there), " + std::to_string(file_bytes) + " present");
  }
  return {};
}

}  // namespace

Result<Head> parse_head(const File& file, uint32_t file_index) {
  ByteReader in(file);
  Head head;
  if (Status s = check_magic(in); !s.ok()) return s;
  head.version = in.number<uint32_t>();
  if (!in.ok()) return in.status();
  if (Status s = check_version(head.version); !s.ok()) return s;

  const uint64_t n_tensors = in.number<uint64_t>();
  const uint64_t n_metadata = in.number<uint64_t>();
  if (!in.can_hold(n_metadata, kMinMetadataBytes, "a list of " + std::to_string(n_metadata) + " metadata keys") ||
      !in.can_hold(n_tensors, kMinTensorBytes, "a list of " + std::to_string(n_tensors) + " tensors")) {
    return in.status();
  }
  if (Status s = read_metadata(in, n_metadata, head); !s.ok()) return s;
  if (Status s = read_alignment(head); !s.ok()) return s;
  if (Status s = read_tensor_infos(in, n_tensors, file_index, head); !s.ok()) return s;
  if (Status s = place_tensors(in.position(), file.size_bytes(), head); !s.ok()) return s;
  return head;
}

}  // namespace leanstream::gguf
