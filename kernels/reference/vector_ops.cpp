#include "kernels/reference/vector_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "kernels/abi/half.h"

namespace leanstream::reference {
namespace {

using kernels::AttentionTask;
using kernels::GluActivation;
using kernels::KvType;
using kernels::RopeStyle;

constexpr uint32_t kQ8Block = 32;
constexpr size_t kQ8BlockBytes = 34;

double activate(GluActivation activation, double x) {
  switch (activation) {
    case GluActivation::kSilu:
      return x / (1.0 + std::exp(-x));
    case GluActivation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case GluActivation::kRelu:
      return x < 0.0 ? 0.0 : x;
  }
  return 0.0;
}

void store_q8_block(const float* x, std::byte* out) {
  float max = 0.0f;
  for (uint32_t i = 0; i < kQ8Block; ++i) {
    if (!std::isfinite(x[i])) max = std::numeric_limits<float>::quiet_NaN();
    if (std::abs(x[i]) > max) max = std::abs(x[i]);
  }
  const float inverse = max > 0.0f ? 127.0f / max : 0.0f;
  const uint16_t scale = float_to_half(max / 127.0f);
  std::memcpy(out, &scale, sizeof scale);
  for (uint32_t i = 0; i < kQ8Block; ++i) {
    const float scaled = std::isnan(x[i] * inverse) ? 0.0f : x[i] * inverse;
    out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::nearbyint(scaled)));
  }
}

// Head `head` of position `position`.
void attend_one(const AttentionTask& task, uint32_t position, uint32_t head) {
  const size_t offset = position * task.position_stride + size_t{head} * task.head_dim;
  const uint32_t begin = task.first_row(position), end = task.end + position;
  std::vector<float> row(task.head_dim);

  std::vector<double> weight;  // [end - begin] scores, then exponentials
  for (uint32_t t = begin; t < end; ++t) {
    load_kv(task.kv_type, task.k + t * task.kv_stride_bytes, task.head_dim, row.data());
    double dot = 0.0;
    for (uint32_t i = 0; i < task.head_dim; ++i) dot += static_cast<double>(task.q[offset + i]) * row[i];
    weight.push_back(dot * task.scale);
  }
  const double max = *std::max_element(weight.begin(), weight.end());
  double sum = 0.0;
  for (double& w : weight) sum += w = std::exp(w - max);

  std::vector<double> out(task.head_dim, 0.0);
  for (uint32_t t = begin; t < end; ++t) {
    load_kv(task.kv_type, task.v + t * task.kv_stride_bytes, task.head_dim, row.data());
    for (uint32_t i = 0; i < task.head_dim; ++i) out[i] += weight[t - begin] / sum * row[i];
  }
  std::copy(out.begin(), out.end(), task.out + offset);
}

}  // namespace

void rms_norm(const float* x, const float* weight, uint32_t n, float epsilon, float* out) {
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double scale = 1.0 / std::sqrt(sum / n + epsilon);
  for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] * scale * weight[i]);
}

void add(float* x, const float* y, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) x[i] += y[i];
}

void glu(GluActivation activation, const float* gate, const float* up, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<float>(activate(activation, gate[i]) * up[i]);
}

void rope(RopeStyle style, const float* cos, const float* sin, uint32_t n_rot, float* x) {
  for (uint32_t i = 0; i < n_rot / 2; ++i) {
    float& a = x[style == RopeStyle::kInterleaved ? 2 * i : i];
    float& b = x[style == RopeStyle::kInterleaved ? 2 * i + 1 : i + n_rot / 2];
    const double c = cos[i], s = sin[i], before_a = a, before_b = b;
    a = static_cast<float>(before_a * c - before_b * s);
    b = static_cast<float>(before_a * s + before_b * c);
  }
}

void store_kv(KvType type, const float* x, uint32_t head_dim, std::byte* out) {
  if (type == KvType::kQ8_0) {
    for (uint32_t i = 0; i < head_dim; i += kQ8Block) store_q8_block(x + i, out + i / kQ8Block * kQ8BlockBytes);
    return;
  }
  for (uint32_t i = 0; i < head_dim; ++i) {
    const uint16_t half = float_to_half(x[i]);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

void load_kv(KvType type, const std::byte* stored, uint32_t head_dim, float* out) {
  for (uint32_t i = 0; i < head_dim; ++i) {
    const std::byte* at = type == KvType::kF16 ? stored + 2 * i : stored + i / kQ8Block * kQ8BlockBytes;
    uint16_t half;
    std::memcpy(&half, at, sizeof half);
    out[i] = half_to_float(half);
    if (type == KvType::kQ8_0) out[i] *= static_cast<int8_t>(at[2 + i % kQ8Block]);
  }
}

void attention(const AttentionTask& task) {
  for (uint32_t position = 0; position < task.n_positions; ++position)
    for (uint32_t head = 0; head < task.n_queries; ++head) attend_one(task, position, head);
}

int64_t argmax(const float* x, uint32_t n) {
  int64_t best = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) return -1;
    if (x[i] > x[best]) best = i;
  }
  return best;
}

double log_sum_exp(const float* x, uint32_t n) {
  double max = -std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) return std::numeric_limits<double>::quiet_NaN();
    max = std::max(max, static_cast<double>(x[i]));
  }
  if (std::isinf(max)) return max;
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  return max + std::log(sum);
}

}  // namespace leanstream::reference
