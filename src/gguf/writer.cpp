#include "gguf/writer.h"

#include <cstring>

#include "base/checked.h"
#include "base/units.h"

namespace leanstream::gguf {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kDefaultAlignment = 32;

template <typename T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_string(std::string& out, std::string_view s) {
  append_number<uint64_t>(out, s.size());
  out.append(s);
}

template <typename Stored, typename Wide>
void append_numbers(std::string& out, const std::vector<Wide>& values) {
  for (Wide value : values) append_number(out, static_cast<Stored>(value));
}

void append_array(std::string& out, const Array& array) {
  append_number(out, static_cast<uint32_t>(array.type));
  append_number<uint64_t>(out, array.size());
  switch (array.type) {
    case ValueType::kUint8:
    case ValueType::kBool:
      return append_numbers<uint8_t>(out, array.unsigneds);
    case ValueType::kUint16:
      return append_numbers<uint16_t>(out, array.unsigneds);
    case ValueType::kUint32:
      return append_numbers<uint32_t>(out, array.unsigneds);
    case ValueType::kUint64:
      return append_numbers<uint64_t>(out, array.unsigneds);
    case ValueType::kInt8:
      return append_numbers<int8_t>(out, array.signeds);
    case ValueType::kInt16:
      return append_numbers<int16_t>(out, array.signeds);
    case ValueType::kInt32:
      return append_numbers<int32_t>(out, array.signeds);
    case ValueType::kInt64:
      return append_numbers<int64_t>(out, array.signeds);
    case ValueType::kFloat32:
      return append_numbers<float>(out, array.floats);
    case ValueType::kFloat64:
      return append_numbers<double>(out, array.floats);
    case ValueType::kString:
      for (size_t i = 0; i < array.strings.size(); ++i) append_string(out, array.strings[i]);
      return;
    case ValueType::kArray:
      for (const Array& inner : array.arrays) append_array(out, inner);
      return;
  }
}

void append_value(std::string& out, const Value& value) {
  append_number(out, static_cast<uint32_t>(value.type));
  switch (value.type) {
    case ValueType::kUint8:
    case ValueType::kBool:
      return append_number(out, static_cast<uint8_t>(std::get<uint64_t>(value.value)));
    case ValueType::kUint16:
      return append_number(out, static_cast<uint16_t>(std::get<uint64_t>(value.value)));
    case ValueType::kUint32:
      return append_number(out, static_cast<uint32_t>(std::get<uint64_t>(value.value)));
    case ValueType::kUint64:
      return append_number(out, std::get<uint64_t>(value.value));
    case ValueType::kInt8:
      return append_number(out, static_cast<int8_t>(std::get<int64_t>(value.value)));
    case ValueType::kInt16:
      return append_number(out, static_cast<int16_t>(std::get<int64_t>(value.value)));
    case ValueType::kInt32:
      return append_number(out, static_cast<int32_t>(std::get<int64_t>(value.value)));
    case ValueType::kInt64:
      return append_number(out, std::get<int64_t>(value.value));
    case ValueType::kFloat32:
      return append_number(out, static_cast<float>(std::get<double>(value.value)));
    case ValueType::kFloat64:
      return append_number(out, std::get<double>(value.value));
    case ValueType::kString:
      return append_string(out, std::get<std::string>(value.value));
    case ValueType::kArray:
      return append_array(out, std::get<Array>(value.value));
  }
}

}  // namespace

Writer::Writer(uint64_t alignment) : alignment_(alignment) {
  if (alignment != kDefaultAlignment) set_uint32("general.alignment", static_cast<uint32_t>(alignment));
}

void Writer::set(const std::string& key, Value value) {
  for (auto& [known, old] : metadata_) {
    if (known != key) continue;
    old = std::move(value);
    return;
  }
  metadata_.emplace_back(key, std::move(value));
}

void Writer::set_string(const std::string& key, std::string value) {
  set(key, {ValueType::kString, std::move(value)});
}
void Writer::set_uint32(const std::string& key, uint32_t value) {
  set(key, {ValueType::kUint32, uint64_t{value}});
}
void Writer::set_float32(const std::string& key, float value) {
  set(key, {ValueType::kFloat32, double{value}});
}
void Writer::set_bool(const std::string& key, bool value) {
  set(key, {ValueType::kBool, uint64_t{value}});
}

void Writer::set_strings(const std::string& key, StringList values) {
  Array array;
  array.type = ValueType::kString;
  array.strings = std::move(values);
  set(key, {ValueType::kArray, std::move(array)});
}

void Writer::set_floats(const std::string& key, const std::vector<float>& values) {
  Array array;
  array.type = ValueType::kFloat32;
  array.floats.assign(values.begin(), values.end());
  set(key, {ValueType::kArray, std::move(array)});
}

void Writer::set_int32s(const std::string& key, const std::vector<int32_t>& values) {
  Array array;
  array.type = ValueType::kInt32;
  array.signeds.assign(values.begin(), values.end());
  set(key, {ValueType::kArray, std::move(array)});
}

void Writer::add_tensor(const std::string& name, const TensorType& type, std::vector<uint64_t> dims) {
  uint64_t size_bytes = dims[0] / type.block_elements * type.block_bytes;
  for (size_t i = 1; i < dims.size(); ++i) size_bytes *= dims[i];
  const uint64_t offset = data_bytes();
  tensors_.push_back({name, type.id, std::move(dims), size_bytes, offset});
}
void Writer::add_tensor(const std::string& name, WeightType type, std::vector<uint64_t> dims) {
  add_tensor(name, *find_tensor_type(static_cast<uint32_t>(type)), std::move(dims));
}

// Every tensor is padded, the last one too: readers that load all tensors' bytes at once expect it.
uint64_t Writer::data_bytes() const {
  return tensors_.empty() ? 0 : align_up(tensors_.back().offset + tensors_.back().size_bytes, alignment_);
}

std::string Writer::head() const {
  std::string out = "GGUF";
  append_number<uint32_t>(out, kVersion);
  append_number<uint64_t>(out, tensors_.size());
  append_number<uint64_t>(out, metadata_.size());
  for (const auto& [key, value] : metadata_) {
    append_string(out, key);
    append_value(out, value);
  }
  for (const Tensor& tensor : tensors_) {
    append_string(out, tensor.name);
    append_number(out, static_cast<uint32_t>(tensor.dims.size()));
    append_numbers<uint64_t>(out, tensor.dims);
    append_number(out, tensor.type_id);
    append_number(out, tensor.offset);
  }
  out.resize(align_up(out.size(), alignment_));
  return out;
}

uint64_t Writer::file_bytes() const {
  return head().size() + data_bytes();
}

Status Writer::check_room(const std::string& path) const {
  const std::optional<uint64_t> free_bytes = free_disk_bytes(path);
  if (!free_bytes || *free_bytes >= file_bytes()) return {};
  return {Code::kIo, "cannot write " + path + ": it needs " + format_bytes(file_bytes()) + ", and " +
                         format_bytes(*free_bytes) + " are free there"};
}

Status Writer::begin(const std::string& path) {
  if (Status s = check_room(path); !s.ok()) return s;
  Result<AtomicFileWriter> file = AtomicFileWriter::create(path);
  if (!file.ok()) return file.status();
  file_.emplace(std::move(*file));
  const std::string head_bytes = head();
  return file_->write(std::as_bytes(std::span(head_bytes)));
}

Status Writer::write_tensor(std::span<const std::byte> bytes) {
  if (current_ == tensors_.size() || bytes.size() > tensors_[current_].size_bytes - current_bytes_) {
    return internal_error("more tensor bytes written than announced");
  }
  if (Status s = file_->write(bytes); !s.ok()) return s;
  current_bytes_ += bytes.size();
  if (current_bytes_ < tensors_[current_].size_bytes) return {};
  ++current_;
  current_bytes_ = 0;
  return file_->pad_to(alignment_);
}

Status Writer::commit() {
  if (current_ < tensors_.size()) {
    return internal_error("tensor '" + tensors_[current_].name + "' is incomplete: " + std::to_string(current_bytes_) +
                          " of " + std::to_string(tensors_[current_].size_bytes) + " bytes written");
  }
  return file_->commit();
}

}  // namespace leanstream::gguf
