#include "kernels/reference/quantize_k.h"

#include <algorithm>
#include <cmath>

#include "kernels/abi/half.h"

namespace leanstream::reference {
namespace {

constexpr int kElements = 256;
constexpr int kMaxGroups = 16;

// To the nearest whole number, ties to even, within bounds: adding 1.5 * 2^23 leaves no bits for a fraction.
float rounded(float value, float least, float greatest) {
  constexpr float kNoFraction = 0x1.8p23f;
  return std::min(std::max(value, least), greatest) + kNoFraction - kNoFraction;
}
int8_t rounded_int(float value, int least, int greatest) {
  return static_cast<int8_t>(rounded(value, static_cast<float>(least), static_cast<float>(greatest)));
}

float rounded_to_half(float value) {
  return half_to_float(float_to_half(value));
}

// ---- Types with a scale and an offset per group: x ~ scale * q - min, q in [0, q_max], min >= 0.

struct Affine {
  float scale = 0.0f;
  float min = 0.0f;
};

// The scale and min of least squared error for fixed q: the line through the points (q, x), kept at min >= 0.
Affine line_through(const float* x, const float* q, int n) {
  float sum_q = 0.0f, sum_qq = 0.0f, sum_x = 0.0f, sum_qx = 0.0f;
  for (int i = 0; i < n; ++i) {
    sum_q += q[i];
    sum_qq += q[i] * q[i];
    sum_x += x[i];
    sum_qx += q[i] * x[i];
  }
  const float determinant = static_cast<float>(n) * sum_qq - sum_q * sum_q;
  if (determinant > 0.0f) {
    const float scale = (static_cast<float>(n) * sum_qx - sum_q * sum_x) / determinant;
    const float min = (sum_q * sum_qx - sum_qq * sum_x) / determinant;
    if (min >= 0.0f) return {std::max(scale, 0.0f), min};
  }
  return {sum_qq > 0.0f ? std::max(sum_qx / sum_qq, 0.0f) : 0.0f, 0.0f};
}

float squared_error(const float* x, const float* q, int n, Affine fit) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float error = fit.scale * q[i] - fit.min - x[i];
    sum += error * error;
  }
  return sum;
}

// Tries step widths around the one that spans the range exactly: clipping the outermost numbers a little, or leaving
// a level unused, often leaves a smaller error for all the others.
Affine fit_affine(const float* x, int n, int q_max) {
  const auto [least, greatest] = std::minmax_element(x, x + n);
  const float begin = std::min(*least, 0.0f);
  const float range = *greatest - begin;
  if (range <= 0.0f) return {0.0f, -begin};

  Affine best{range / static_cast<float>(q_max), -begin};
  float best_error = INFINITY;
  const float greatest_q = static_cast<float>(q_max);
  float q[32];
  for (int step = -8; step <= 8; ++step) {
    const float inverse = (greatest_q + 0.1f * static_cast<float>(step)) / range;
    for (int i = 0; i < n; ++i) q[i] = rounded(inverse * (x[i] - begin), 0.0f, greatest_q);
    const Affine fit = line_through(x, q, n);
    const float error = squared_error(x, q, n, fit);
    if (error >= best_error) continue;
    best_error = error;
    best = fit;
  }
  return best;
}

Block fit_affine_block(const float* x, int group, int q_max, int scale_max) {
  const int n_groups = kElements / group;
  Affine fits[kMaxGroups];
  float max_scale = 0.0f, max_min = 0.0f;
  for (int g = 0; g < n_groups; ++g) {
    fits[g] = fit_affine(x + g * group, group, q_max);
    max_scale = std::max(max_scale, fits[g].scale);
    max_min = std::max(max_min, fits[g].min);
  }
  Block block;
  block.d = rounded_to_half(max_scale / static_cast<float>(scale_max));
  block.dmin = rounded_to_half(max_min / static_cast<float>(scale_max));
  for (int g = 0; g < n_groups; ++g) {
    if (block.d > 0.0f) block.scale[g] = rounded_int(fits[g].scale / block.d, 0, scale_max);
    if (block.dmin > 0.0f) block.min[g] = rounded_int(fits[g].min / block.dmin, 0, scale_max);
    const float scale = block.d * static_cast<float>(block.scale[g]);
    const float min = block.dmin * static_cast<float>(block.min[g]);
    if (scale == 0.0f) continue;
    for (int i = g * group; i < (g + 1) * group; ++i) {
      block.q[i] = rounded_int((x[i] + min) / scale, 0, q_max);
    }
  }
  return block;
}

// ---- Types with a signed scale per group: x ~ scale * q, q in [-levels, levels - 1].

// For fixed q the best scale is sum(qx) / sum(qq), and it removes sum(qx)^2 / sum(qq) of the squared error.
float fit_scale(const float* x, int n, int levels) {
  const float extreme = *std::max_element(x, x + n, [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (extreme == 0.0f) return 0.0f;
  const float least_q = static_cast<float>(-levels), greatest_q = static_cast<float>(levels - 1);
  float best_scale = 0.0f, best_gain = -1.0f;
  for (int step = -9; step <= 9; ++step) {
    const float inverse = (least_q - 0.1f * static_cast<float>(step)) / extreme;
    float sum_qx = 0.0f, sum_qq = 0.0f;
    for (int i = 0; i < n; ++i) {
      const float q = rounded(inverse * x[i], least_q, greatest_q);
      sum_qx += q * x[i];
      sum_qq += q * q;
    }
    if (sum_qq == 0.0f) continue;
    const float gain = sum_qx * sum_qx / sum_qq;
    if (gain <= best_gain) continue;
    best_gain = gain;
    best_scale = sum_qx / sum_qq;
  }
  return best_scale;
}

Block fit_signed_block(const float* x, int levels, int scale_levels) {
  constexpr int kGroup = 16;
  float scales[kMaxGroups];
  for (int g = 0; g < kMaxGroups; ++g) scales[g] = fit_scale(x + g * kGroup, kGroup, levels);
  const float extreme =
      *std::max_element(scales, scales + kMaxGroups, [](float a, float b) { return std::abs(a) < std::abs(b); });

  Block block;
  block.d = rounded_to_half(extreme / static_cast<float>(-scale_levels));
  if (block.d == 0.0f) return block;
  for (int g = 0; g < kMaxGroups; ++g) {
    block.scale[g] = rounded_int(scales[g] / block.d, -scale_levels, scale_levels - 1);
    const float scale = block.d * static_cast<float>(block.scale[g]);
    if (scale == 0.0f) continue;
    for (int i = g * kGroup; i < (g + 1) * kGroup; ++i) {
      block.q[i] = rounded_int(x[i] / scale, -levels, levels - 1);
    }
  }
  return block;
}

}  // namespace

Block fit_k_block(WeightType type, const float* x) {
  switch (type) {
    case WeightType::kQ2_K:
      return fit_affine_block(x, 16, 3, 15);
    case WeightType::kQ3_K:
      return fit_signed_block(x, 4, 32);
    case WeightType::kQ4_K:
      return fit_affine_block(x, 32, 15, 63);
    case WeightType::kQ5_K:
      return fit_affine_block(x, 32, 31, 63);
    case WeightType::kQ6_K:
      return fit_signed_block(x, 32, 128);
    default:
      return {};
  }
}

}  // namespace leanstream::reference
