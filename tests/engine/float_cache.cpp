#include "tests/engine/float_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace leanstream::test {
namespace {

// A cache row holds the number of a row here.
std::vector<float> g_rows;
std::atomic<uint32_t> g_used{0};
uint32_t g_row_elements = 0;

void store(kernels::KvType, const float* x, uint32_t head_dim, std::byte* out) {
  const uint32_t index = g_used.fetch_add(1);
  if ((size_t{index} + 1) * g_row_elements > g_rows.size()) std::abort();
  std::copy(x, x + head_dim, g_rows.data() + size_t{index} * g_row_elements);
  std::memcpy(out, &index, sizeof index);
}

const float* stored(const std::byte* row) {
  uint32_t index;
  std::memcpy(&index, row, sizeof index);
  return g_rows.data() + size_t{index} * g_row_elements;
}

void attend(const kernels::AttentionTask& task, const float* q, uint32_t first, uint32_t end, float* out) {
  std::vector<double> weights;
  for (uint32_t t = first; t < end; ++t) {
    const float* key = stored(task.k + t * task.kv_stride_bytes);
    double score = 0;
    for (uint32_t i = 0; i < task.head_dim; ++i) score += double{q[i]} * key[i];
    weights.push_back(score * task.scale);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  std::vector<double> sums(task.head_dim);
  double total = 0;
  for (uint32_t t = first; t < end; ++t) {
    const double weight = std::exp(weights[t - first] - largest);
    const float* value = stored(task.v + t * task.kv_stride_bytes);
    for (uint32_t i = 0; i < task.head_dim; ++i) sums[i] += weight * value[i];
    total += weight;
  }
  for (uint32_t i = 0; i < task.head_dim; ++i) out[i] = static_cast<float>(sums[i] / total);
}

void attention(const kernels::AttentionTask& task) {
  for (uint32_t p = 0; p < task.n_positions; ++p)
    for (uint32_t head = 0; head < task.n_queries; ++head) {
      const size_t at = p * task.position_stride + size_t{head} * task.head_dim;
      attend(task, task.q + at, task.first_row(p), task.end + p, task.out + at);
    }
}

}  // namespace

kernels::Kernels with_float_cache(const kernels::Kernels& base, size_t rows, uint32_t head_dim) {
  g_rows.assign(rows * head_dim, 0.0f);
  g_row_elements = head_dim;
  g_used = 0;
  kernels::Kernels kernels = base;
  kernels.store_kv = store;
  kernels.attention = attention;
  return kernels;
}

}  // namespace leanstream::test
