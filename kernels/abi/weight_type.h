#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leanstream {

// How a matrix's numbers are stored. The values are the type ids of the GGUF file format.
enum class WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

// A row of `cols` numbers is cols / block_elements blocks of block_bytes each, back to back.
struct WeightTypeTraits {
  WeightType type;
  const char* name;         // as users write it: "Q4_0"
  uint32_t block_elements;  // consecutive elements of a row that share scales
  uint32_t block_bytes;
};

inline constexpr std::array<WeightTypeTraits, 13> kWeightTypes = {{
    {WeightType::kF32, "F32", 1, 4},
    {WeightType::kF16, "F16", 1, 2},
    {WeightType::kBF16, "BF16", 1, 2},
    {WeightType::kQ4_0, "Q4_0", 32, 18},
    {WeightType::kQ4_1, "Q4_1", 32, 20},
    {WeightType::kQ5_0, "Q5_0", 32, 22},
    {WeightType::kQ5_1, "Q5_1", 32, 24},
    {WeightType::kQ8_0, "Q8_0", 32, 34},
    {WeightType::kQ2_K, "Q2_K", 256, 84},
    {WeightType::kQ3_K, "Q3_K", 256, 110},
    {WeightType::kQ4_K, "Q4_K", 256, 144},
    {WeightType::kQ5_K, "Q5_K", 256, 176},
    {WeightType::kQ6_K, "Q6_K", 256, 210},
}};

// nullptr for an id that this library does not compute with.
constexpr const WeightTypeTraits* find_weight_type(uint32_t id) {
  for (const WeightTypeTraits& t : kWeightTypes)
    if (static_cast<uint32_t>(t.type) == id) return &t;
  return nullptr;
}
constexpr const WeightTypeTraits& traits(WeightType type) { return *find_weight_type(static_cast<uint32_t>(type)); }

// Bytes of one row. The caller guarantees that cols is a multiple of block_elements.
constexpr size_t row_bytes(WeightType type, uint64_t cols) {
  const WeightTypeTraits& t = traits(type);
  return cols / t.block_elements * t.block_bytes;
}

constexpr bool is_float(WeightType type) { return traits(type).block_elements == 1; }

}  // namespace leanstream
