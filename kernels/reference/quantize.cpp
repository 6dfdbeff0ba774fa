#include "kernels/reference/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/abi/half.h"
#include "kernels/reference/quantize_k.h"

namespace leanstream::reference {
namespace {

constexpr int kBlock = 32;  // elements, of Q4_0 to Q8_0

// Beyond these a scale in half precision is infinite or zero, whatever the type.
constexpr float kGreatest = 65504.0f * 128.0f;
constexpr float kLeast = 1e-12f;

// The greatest |x[i]|; NaN where there is one.
float extreme_magnitude(const float* x, size_t n) {
  float extreme = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    if (!(std::abs(x[i]) <= extreme)) extreme = std::abs(x[i]);
    if (std::isnan(extreme)) break;
  }
  return extreme;
}

// Q4_0 (levels 8) and Q5_0 (levels 16): q in [-levels, levels - 1]; the number farthest from zero becomes -levels.
Block fit_symmetric(const float* x, int levels) {
  const float extreme = *std::max_element(x, x + kBlock, [](float a, float b) { return std::abs(a) < std::abs(b); });
  Block block;
  block.d = extreme / static_cast<float>(-levels);
  const float inverse = 1.0f / block.d;
  for (int i = 0; i < kBlock; ++i) {
    const int q = static_cast<int>(x[i] * inverse + (static_cast<float>(levels) + 0.5f));
    block.q[i] = static_cast<int8_t>(std::min(q, 2 * levels - 1) - levels);
  }
  return block;
}

// Q4_1 (steps 15) and Q5_1 (steps 31): the range from least to greatest in equal steps.
Block fit_range(const float* x, int steps) {
  const auto [least, greatest] = std::minmax_element(x, x + kBlock);
  Block block;
  block.d = (*greatest - *least) / static_cast<float>(steps);
  block.dmin = *least;
  const float inverse = block.d == 0.0f ? 0.0f : 1.0f / block.d;
  for (int i = 0; i < kBlock; ++i) {
    const int q = static_cast<int>((x[i] - *least) * inverse + 0.5f);
    block.q[i] = static_cast<int8_t>(std::min(q, steps));
  }
  return block;
}

Block fit_q8_0(const float* x) {
  Block block;
  block.d = extreme_magnitude(x, kBlock) / 127.0f;
  const float inverse = 1.0f / block.d;
  for (int i = 0; i < kBlock; ++i) block.q[i] = static_cast<int8_t>(std::round(x[i] * inverse));
  return block;
}

Block fit_block(WeightType type, const float* x) {
  const float extreme = extreme_magnitude(x, traits(type).block_elements);
  if (extreme < kLeast) return {};
  if (!(extreme <= kGreatest)) {
    Block block;
    block.d = std::numeric_limits<float>::quiet_NaN();
    return block;
  }
  switch (type) {
    case WeightType::kQ4_0:
      return fit_symmetric(x, 8);
    case WeightType::kQ4_1:
      return fit_range(x, 15);
    case WeightType::kQ5_0:
      return fit_symmetric(x, 16);
    case WeightType::kQ5_1:
      return fit_range(x, 31);
    case WeightType::kQ8_0:
      return fit_q8_0(x);
    default:
      return fit_k_block(type, x);
  }
}

void quantize_halves(const float* x, size_t n, uint16_t (*convert)(float), std::byte* out) {
  for (size_t i = 0; i < n; ++i) {
    const uint16_t bits = convert(x[i]);
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace

void quantize(WeightType type, const float* x, size_t n, std::byte* out) {
  if (type == WeightType::kF32) {
    std::memcpy(out, x, n * sizeof(float));
    return;
  }
  if (type == WeightType::kF16) return quantize_halves(x, n, float_to_half, out);
  if (type == WeightType::kBF16) return quantize_halves(x, n, float_to_bfloat16, out);

  const auto [id, name, block_elements, block_bytes] = traits(type);
  for (size_t begin = 0; begin < n; begin += block_elements, out += block_bytes) {
    pack_block(type, fit_block(type, x + begin), out);
  }
}

}  // namespace leanstream::reference
