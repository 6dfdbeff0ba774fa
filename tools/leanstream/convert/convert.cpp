#include "tools/leanstream/convert/convert.h"

#include <algorithm>
#include <cctype>

namespace leanstream::convert {

std::optional<WeightType> parse_weight_type(std::string_view name) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    const std::string_view known = type.name;
    if (std::equal(known.begin(), known.end(), name.begin(), name.end(),
                   [](char a, char b) { return a == std::toupper(static_cast<unsigned char>(b)); })) {
      return type.type;
    }
  }
  return std::nullopt;
}

WeightType fitting_type(WeightType wanted, uint64_t cols) {
  for (WeightType type : {wanted, WeightType::kQ8_0}) {
    if (cols % traits(type).block_elements == 0) return type;
  }
  return WeightType::kF16;
}

void note_fallback(uint64_t cols, WeightType wanted, WeightType used, Report& report) {
  std::string note = "matrices with rows of " + std::to_string(cols) + " elements are " + traits(used).name +
                     ": not whole blocks of " + std::to_string(traits(wanted).block_elements) + " (" +
                     traits(wanted).name + ")";
  if (std::find(report.notes.begin(), report.notes.end(), note) == report.notes.end()) {
    report.notes.push_back(std::move(note));
  }
}

uint32_t file_type_number(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return 0;
    case WeightType::kF16:
      return 1;
    case WeightType::kQ4_0:
      return 2;
    case WeightType::kQ4_1:
      return 3;
    case WeightType::kQ8_0:
      return 7;
    case WeightType::kQ5_0:
      return 8;
    case WeightType::kQ5_1:
      return 9;
    case WeightType::kQ2_K:
      return 10;
    case WeightType::kQ3_K:
      return 11;
    case WeightType::kQ4_K:
      return 14;
    case WeightType::kQ5_K:
      return 16;
    case WeightType::kQ6_K:
      return 18;
    case WeightType::kBF16:
      return 32;
  }
  return 0;
}

}  // namespace leanstream::convert
