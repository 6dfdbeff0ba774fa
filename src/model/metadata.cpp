#include "model/metadata.h"

#include <algorithm>

namespace leanstream::model {
namespace {

// The one value of an array of equal integers; kUnsupported when they differ.
Result<uint64_t> uniform_value(const gguf::Array& array, const std::string& key) {
  const auto uniform = [&](const auto& values) -> Result<uint64_t> {
    if (values.front() < 0) return malformed("cannot read the model's shape: key '" + key + "' is negative");
    if (!std::all_of(values.begin(), values.end(), [&](auto v) { return v == values.front(); }))
      return unsupported("cannot run this model: key '" + key + "' differs from layer to layer");
    return static_cast<uint64_t>(values.front());
  };
  if (array.size() == 0) return malformed("cannot read the model's shape: key '" + key + "' is an empty array");
  if (!array.unsigneds.empty()) return uniform(array.unsigneds);
  if (!array.signeds.empty()) return uniform(array.signeds);
  return malformed("cannot read the model's shape: key '" + key + "' is an array of " +
                   gguf::value_type_name(array.type) + ", whole numbers were expected");
}

}  // namespace

Result<uint32_t> Metadata::size(const char* name, uint32_t least, uint32_t most) const {
  const std::string full = key(name);
  const gguf::Value* value = file_.find(full);
  if (!value) return malformed("cannot read the model's shape: key '" + full + "' is missing");

  uint64_t number = 0;
  if (const gguf::Array* array = std::get_if<gguf::Array>(&value->value)) {
    const Result<uint64_t> uniform = uniform_value(*array, full);
    if (!uniform.ok()) return uniform.status();
    number = *uniform;
  } else {
    const Result<std::optional<uint64_t>> scalar = file_.find_unsigned(full);
    if (!scalar.ok()) return scalar.status();
    number = **scalar;
  }
  if (number < least || number > most)
    return malformed("cannot read the model's shape: key '" + full + "' is " + std::to_string(number) +
                     ", not between " + std::to_string(least) + " and " + std::to_string(most));
  return static_cast<uint32_t>(number);
}

Result<uint32_t> Metadata::size_or(const char* name, uint32_t fallback, uint32_t least, uint32_t most) const {
  if (!has(name)) return fallback;
  return size(name, least, most);
}

Result<double> Metadata::number(const char* name, double above, double most) const {
  const std::string full = key(name);
  const Result<std::optional<double>> value = file_.find_float(full);
  if (!value.ok()) return value.status();
  if (!value->has_value()) return malformed("cannot read the model's constants: key '" + full + "' is missing");
  if (!(**value > above && **value <= most))
    return malformed("cannot read the model's constants: key '" + full + "' is " + std::to_string(**value) +
                     ", not above " + std::to_string(above) + " and at most " + std::to_string(most));
  return **value;
}

Result<double> Metadata::number_or(const char* name, double fallback, double above, double most) const {
  if (!has(name)) return fallback;
  return number(name, above, most);
}

}  // namespace leanstream::model
