#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "gguf/reader.h"

namespace leanstream::model {

// Typed, range-checked access to the keys "<architecture>.<name>" of one file. Errors are kMalformed and name the key
// and, for a range, the value. Borrows the file.
class Metadata {
 public:
  Metadata(const gguf::Model& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string key(const char* name) const { return prefix_ + name; }
  bool has(const char* name) const { return file_.find(key(name)) != nullptr; }

  // A whole number in [least, most]. An array holding one value per layer is taken when all are equal; models whose
  // layers differ are kUnsupported.
  Result<uint32_t> size(const char* name, uint32_t least, uint32_t most) const;
  Result<uint32_t> size_or(const char* name, uint32_t fallback, uint32_t least, uint32_t most) const;

  // A finite number in (above, most].
  Result<double> number(const char* name, double above, double most) const;
  Result<double> number_or(const char* name, double fallback, double above, double most) const;

  Result<std::optional<std::string>> text(const char* name) const { return file_.find_string(key(name)); }
  Result<std::optional<bool>> flag(const char* name) const { return file_.find_bool(key(name)); }
  const gguf::Value* find(const char* name) const { return file_.find(key(name)); }

 private:
  const gguf::Model& file_;
  const std::string prefix_;
};

}  // namespace leanstream::model
