#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/abi/weight_type.h"

namespace leanstream::convert {

// Called now and then with bytes written and the file's size; false stops the work, which then leaves nothing behind.
using Progress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

// What was written, for people.
struct Report {
  uint64_t file_bytes = 0;
  uint64_t parameters = 0;
  std::vector<std::string> notes;  // sentences: tensors that could not have the type that was asked for, and why
};

// "Q4_0", "q4_0" -> WeightType::kQ4_0.
std::optional<WeightType> parse_weight_type(std::string_view name);

// `wanted` where rows of `cols` elements are whole blocks of it; else Q8_0, else F16.
WeightType fitting_type(WeightType wanted, uint64_t cols);

// Adds, once, why matrices with rows of `cols` elements have not the type that was asked for.
void note_fallback(uint64_t cols, WeightType wanted, WeightType used, Report& report);

// The value of the metadata key 'general.file_type' for a file whose matrices are all of one type.
uint32_t file_type_number(WeightType type);

}  // namespace leanstream::convert
