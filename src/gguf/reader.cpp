#include "gguf/reader.h"

#include "base/checked.h"
#include "gguf/head.h"

namespace leanstream::gguf {
namespace {

std::string quoted(std::string_view s) {
  return "'" + std::string(s) + "'";
}

// "float32", "int32 -5", "an array of uint8": what a key holds, in an error.
std::string describe(const Value& value) {
  if (const auto* array = std::get_if<Array>(&value.value)) {
    return std::string("an array of ") + value_type_name(array->type);
  }
  const std::string type = value_type_name(value.type);
  if (const auto* i = std::get_if<int64_t>(&value.value)) return type + " " + std::to_string(*i);
  return type;
}

}  // namespace

uint64_t TensorInfo::element_count() const {
  uint64_t count = 1;
  for (uint64_t dim : dims) count *= dim;
  return count;
}

Result<Model> Model::open(const std::string& path) {
  Result<File> first = File::open(path);
  if (!first.ok()) return first.status();
  Model model;
  if (Status s = model.add_split_set(*std::move(first)); !s.ok()) return s.with_context("cannot open model");
  return model;
}

Status Model::add_split_set(File first_file) {
  const std::string first_path = first_file.path();
  const Result<SplitKeys> first = add_file(std::move(first_file));
  if (!first.ok()) return first.status();
  const Result<std::vector<std::string>> paths = split_paths(first_path, *first);
  if (!paths.ok()) return paths.status();

  for (uint64_t i = 1; i < (*paths).size(); ++i) {
    const std::string& path = (*paths)[i];
    const std::string part = "part " + std::to_string(i + 1) + " of " + std::to_string((*paths).size());
    Result<File> file = File::open(path);
    if (!file.ok()) return file.status().with_context(part);
    const Result<SplitKeys> keys = add_file(*std::move(file));
    if (!keys.ok()) return keys.status().with_context(part);
    if ((*keys).number != i || (*keys).count != (*first).count) {
      return malformed(path + ": expected " + part + ", its metadata says part " + std::to_string((*keys).number + 1) +
                       " of " + std::to_string((*keys).count));
    }
  }
  if ((*first).tensor_count.value_or(tensors_.size()) != tensors_.size()) {
    return malformed(first_path + ": metadata key 'split.tensors.count' says " +
                     std::to_string(*(*first).tensor_count) + " tensors, the files hold " +
                     std::to_string(tensors_.size()));
  }
  return {};
}

// Parses one file and takes in its tensors; of the first file, the metadata too.
Result<SplitKeys> Model::add_file(File file) {
  const std::string path = file.path();
  Result<Head> head = parse_head(file, static_cast<uint32_t>(files_.size()));
  if (!head.ok()) return head.status().with_context(path);
  Result<SplitKeys> keys = read_split_keys(head->metadata);
  if (!keys.ok()) return keys.status().with_context(path);

  for (TensorInfo& tensor : head->tensors) {
    const auto [place, is_new] = tensor_index_.emplace(tensor.name, tensors_.size());
    if (!is_new) {
      const uint32_t other = tensors_[place->second].file_index;
      return malformed(path + ": tensor " + quoted(tensor.name) + " is given twice" +
                       (other == tensor.file_index ? "" : ", here and in " + files_[other].path()));
    }
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(std::move(file));
  if (files_.size() > 1) return keys;

  version_ = head->version;
  alignment_ = head->alignment;
  metadata_ = std::move(head->metadata);
  for (size_t i = 0; i < metadata_.size(); ++i) metadata_index_.emplace(metadata_[i].first, i);
  return keys;
}

uint64_t Model::total_file_bytes() const {
  uint64_t total = 0;
  for (const File& file : files_) total += file.size_bytes();
  return total;
}

const Value* Model::find(std::string_view key) const {
  const auto found = metadata_index_.find(key);
  return found == metadata_index_.end() ? nullptr : &metadata_[found->second].second;
}

const TensorInfo* Model::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Status Model::wrong_type(std::string_view key, const Value& value, std::string_view expected) const {
  return malformed(path() + ": metadata key " + quoted(key) + " is " + describe(value) + "; expected " +
                   std::string(expected));
}

Result<std::optional<uint64_t>> Model::find_unsigned(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  const std::optional<uint64_t> number = as_unsigned(*value);
  if (!number) return wrong_type(key, *value, "an unsigned integer");
  return number;
}

Result<std::optional<double>> Model::find_float(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (value->type != ValueType::kBool) {
    if (const auto* f = std::get_if<double>(&value->value)) return std::optional(*f);
    if (const auto* u = std::get_if<uint64_t>(&value->value)) return std::optional(static_cast<double>(*u));
    if (const auto* i = std::get_if<int64_t>(&value->value)) return std::optional(static_cast<double>(*i));
  }
  return wrong_type(key, *value, "a number");
}

Result<std::optional<bool>> Model::find_bool(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (value->type != ValueType::kBool) return wrong_type(key, *value, "a bool");
  return std::optional(std::get<uint64_t>(value->value) != 0);
}

Result<std::optional<std::string>> Model::find_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (value->type != ValueType::kString) return wrong_type(key, *value, "a string");
  return std::optional(std::get<std::string>(value->value));
}

Result<const Array*> Model::find_array(std::string_view key, ValueType element_type) const {
  const Value* value = find(key);
  if (value == nullptr) return static_cast<const Array*>(nullptr);
  const auto* array = std::get_if<Array>(&value->value);
  if (array == nullptr || array->type != element_type) {
    return wrong_type(key, *value, std::string("an array of ") + value_type_name(element_type));
  }
  return array;
}

Status Model::read_tensor(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  const std::optional<uint64_t> end = checked_add(offset, out.size());
  if (!end || *end > tensor.size_bytes) {
    return internal_error("read past the end of tensor " + quoted(tensor.name));
  }
  const Status status = files_[tensor.file_index].read_at(tensor.offset + offset, out);
  return status.with_context("tensor " + quoted(tensor.name));
}

}  // namespace leanstream::gguf
