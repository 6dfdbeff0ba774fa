#include "kernels/reference/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/reference/blocks.h"
#include "kernels/reference/quantize.h"

namespace leanstream::reference {
namespace {

using kernels::Activations;

// Copies one field of every row, rows of the field side by side. A missing row's field is zeros.
std::byte* interleave_field(const std::byte* field, uint32_t n_rows, size_t row_stride, size_t field_bytes,
                            std::byte* out) {
  for (uint32_t r = 0; r < kPanelRows; ++r, out += field_bytes) {
    if (r < n_rows) {
      std::memcpy(out, field + r * row_stride, field_bytes);
    } else {
      std::memset(out, 0, field_bytes);
    }
  }
  return out;
}

// The block's fields in file order: halves of 2 bytes, everything else in words of 4.
std::vector<size_t> field_bytes(WeightType type) {
  size_t leading_halves = 0, trailing_halves = 0;
  switch (type) {
    case WeightType::kF32:
      break;
    case WeightType::kF16:
    case WeightType::kBF16:
    case WeightType::kQ4_0:
    case WeightType::kQ5_0:
    case WeightType::kQ8_0:
      leading_halves = 1;
      break;
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      leading_halves = 2;
      break;
    case WeightType::kQ3_K:
    case WeightType::kQ6_K:
      trailing_halves = 1;
      break;
    case WeightType::kQ2_K:
      trailing_halves = 2;
      break;
  }
  std::vector<size_t> fields(leading_halves, 2);
  fields.insert(fields.end(), (traits(type).block_bytes - 2 * leading_halves - 2 * trailing_halves) / 4, 4);
  fields.insert(fields.end(), trailing_halves, 2);
  return fields;
}

bool has_offsets(WeightType type) {
  return type == WeightType::kQ4_1 || type == WeightType::kQ5_1 || type == WeightType::kQ2_K ||
         type == WeightType::kQ4_K || type == WeightType::kQ5_K;
}

// The sum of one sum group: columns begin .. end - 1 of a row's `weights` and of vector n.
float float_group(const float* weights, const float* x, uint32_t begin, uint32_t end) {
  float sum = 0.0f;
  for (uint32_t k = begin; k < end; ++k) sum = std::fma(weights[k], x[k], sum);
  return sum;
}

float quantized_group(WeightType type, const std::byte* row, const Activations& x, uint32_t n, uint32_t begin,
                      uint32_t end) {
  const uint32_t block_elements = traits(type).block_elements;
  const uint32_t group = group_elements(type);
  const int8_t* q8 = x.q8 + size_t{n} * x.cols;
  const float* scale = x.scale + size_t{n} * (x.cols / 32);
  float sum = 0.0f;
  for (uint32_t first = begin; first < end; first += block_elements) {
    const Block block = unpack_block(type, row + first / block_elements * traits(type).block_bytes);
    for (uint32_t g = 0; g < block_elements / group; ++g) {
      int32_t dot = 0, q8_sum = 0;
      for (uint32_t i = g * group; i < (g + 1) * group; ++i) {
        dot += block.q[i] * q8[first + i];
        q8_sum += q8[first + i];
      }
      const float x_scale = scale[(first + g * group) / 32];
      const float w_scale = block.d * static_cast<float>(block.scale[g]);
      sum = std::fma(static_cast<float>(dot), w_scale * x_scale, sum);
      if (has_offsets(type)) {
        const float offset = block.dmin * static_cast<float>(block.min[g]);
        sum = std::fma(offset, -(x_scale * static_cast<float>(q8_sum)), sum);
      }
    }
  }
  return sum;
}

}  // namespace

void pack_panel(WeightType type, uint32_t cols, uint32_t n_rows, const std::byte* rows, size_t row_stride,
                std::byte* panel) {
  const std::vector<size_t> fields = field_bytes(type);
  for (uint32_t block = 0; block < cols / traits(type).block_elements; ++block) {
    for (const size_t bytes : fields) {
      panel = interleave_field(rows, n_rows, row_stride, bytes, panel);
      rows += bytes;
    }
  }
}

void unpack_panel(WeightType type, uint32_t cols, uint32_t n_rows, const std::byte* panel, std::byte* rows) {
  const std::vector<size_t> fields = field_bytes(type);
  const size_t row_stride = row_bytes(type, cols);
  for (uint32_t block = 0; block < cols / traits(type).block_elements; ++block) {
    for (const size_t bytes : fields) {
      for (uint32_t r = 0; r < n_rows; ++r) std::memcpy(rows + r * row_stride, panel + r * bytes, bytes);
      panel += kPanelRows * bytes;
      rows += bytes;
    }
  }
}

void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
            size_t out_stride) {
  std::vector<float> weights(w.cols);
  for (uint32_t r = row_begin; r < row_end; ++r) {
    const std::byte* row = w.data + r * row_bytes(w.type, w.cols);
    if (is_float(w.type)) dequantize(w.type, row, w.cols, weights.data());
    for (uint32_t n = 0; n < x.count; ++n) {
      float total = 0.0f;
      for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
        const uint32_t end = std::min(w.cols, begin + kSumGroup);
        total += is_float(w.type) ? float_group(weights.data(), x.f32 + size_t{n} * x.cols, begin, end)
                                  : quantized_group(w.type, row, x, n, begin, end);
      }
      out[n * out_stride + r] = total;
    }
  }
}

void quantize(const float* x, uint32_t cols, int8_t* q8, float* scale, int32_t* sum16) {
  std::fill_n(q8, cols, int8_t{0});
  std::fill_n(sum16, cols / 16, 0);
  for (uint32_t begin = 0; begin < cols; begin += 32) {
    float largest = 0.0f;
    bool finite = true;
    for (uint32_t i = begin; i < begin + 32; ++i) {
      largest = std::max(largest, std::fabs(x[i]));
      finite = finite && std::isfinite(x[i]);
    }
    scale[begin / 32] = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    if (!finite || largest <= 127.0f / std::numeric_limits<float>::max()) continue;
    scale[begin / 32] = largest / 127.0f;
    const float factor = 127.0f / largest;
    for (uint32_t i = begin; i < begin + 32; ++i) {
      q8[i] = static_cast<int8_t>(std::nearbyint(x[i] * factor));
      sum16[i / 16] += q8[i];
    }
  }
}

}  // namespace leanstream::reference
