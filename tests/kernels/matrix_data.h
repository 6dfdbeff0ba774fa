#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/abi/half.h"
#include "kernels/abi/matrix.h"
#include "kernels/cpu/kernels.h"
#include "kernels/reference/matmul.h"

namespace leanstream {

// How GoogleTest names what a test runs with.
inline void PrintTo(WeightType type, std::ostream* out) { *out << traits(type).name; }

}  // namespace leanstream

namespace leanstream::kernels {

inline void PrintTo(const Kernels* kernels, std::ostream* out) { *out << kernels->name; }

// Random matrices and vectors for tests of the matrix kernels. Owns its numbers.

// A scale as files have them, and now and then one that they seldom have: zero, subnormal, negative, large.
inline uint16_t random_scale(std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-0.02f, 0.02f);
  switch (random() % 32) {
    case 0:
      return 0x0000;
    case 1:
      return 0x8000;
    case 2:
      return static_cast<uint16_t>(random() % 0x0400);
    case 3:
      return float_to_half(100.0f * uniform(random));
    default:
      return float_to_half(uniform(random));
  }
}

// Where a block's scales are: the byte offsets of its halves.
inline std::vector<size_t> scale_offsets(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ5_0:
    case WeightType::kQ8_0:
      return {0};
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {0, 2};
    case WeightType::kQ2_K:
      return {80, 82};
    case WeightType::kQ3_K:
      return {108};
    case WeightType::kQ6_K:
      return {208};
    default:
      return {};
  }
}

// File bytes of `rows` rows: random codes, sane scales.
inline std::vector<std::byte> random_rows(WeightType type, uint32_t rows, uint32_t cols, std::mt19937& random) {
  std::vector<std::byte> bytes(rows * row_bytes(type, cols));
  if (is_float(type)) {
    std::normal_distribution<float> normal(0.0f, 0.05f);
    for (size_t i = 0; i < size_t{rows} * cols; ++i) {
      const float value = random() % 64 == 0 ? 1e-6f * normal(random) : normal(random);  // subnormal halves
      const uint16_t half = type == WeightType::kF16 ? float_to_half(value) : float_to_bfloat16(value);
      if (type == WeightType::kF32) {
        std::memcpy(bytes.data() + 4 * i, &value, 4);
      } else {
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      }
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (size_t block = 0; block < bytes.size(); block += traits(type).block_bytes) {
    for (const size_t offset : scale_offsets(type)) {
      const uint16_t scale = random_scale(random);
      std::memcpy(bytes.data() + block + offset, &scale, 2);
    }
  }
  return bytes;
}

inline std::vector<float> random_floats(size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(n);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// `count` vectors and what quantize makes of them.
class TestVectors {
 public:
  TestVectors(uint32_t count, uint32_t cols, std::mt19937& random)
      : count_(count), cols_(cols), f32_(random_floats(size_t{count} * cols, random)) {
    if (cols % 32 != 0) return;
    q8_.resize(f32_.size());
    scale_.resize(f32_.size() / 32);
    sum16_.resize(f32_.size() / 16);
    for (size_t n = 0; n < count; ++n) {
      reference::quantize(f32_.data() + n * cols, cols, q8_.data() + n * cols, scale_.data() + n * (cols / 32),
                          sum16_.data() + n * (cols / 16));
    }
  }

  // The first `count` of them.
  Activations view(uint32_t count) const {
    return {count, cols_, f32_.data(), q8_.data(), scale_.data(), sum16_.data()};
  }
  Activations view() const { return view(count_); }

 private:
  uint32_t count_;
  uint32_t cols_;
  std::vector<float> f32_;
  std::vector<int8_t> q8_;
  std::vector<float> scale_;
  std::vector<int32_t> sum16_;
};

// A matrix in both layouts; the panels are the reference's.
class TestMatrix {
 public:
  TestMatrix(WeightType type, uint32_t rows, uint32_t cols, std::mt19937& random)
      : file_bytes_(random_rows(type, rows, cols, random)),
        panel_bytes_(matrix_bytes(type, Layout::kPanel, rows, cols)),
        file_{type, Layout::kFile, rows, cols, file_bytes_.data()},
        panel_{type, Layout::kPanel, rows, cols, panel_bytes_.data()} {
    const size_t stride = row_bytes(type, cols);
    for (uint32_t p = 0; p < panel_count(rows); ++p) {
      const uint32_t n = std::min(kPanelRows, rows - p * kPanelRows);
      reference::pack_panel(type, cols, n, file_bytes_.data() + p * kPanelRows * stride, stride,
                            panel_bytes_.data() + p * leanstream::panel_bytes(type, cols));
    }
  }

  const Matrix& in(Layout layout) const { return layout == Layout::kFile ? file_ : panel_; }
  const std::vector<std::byte>& file_bytes() const { return file_bytes_; }
  const std::vector<std::byte>& panel_bytes() const { return panel_bytes_; }

 private:
  std::vector<std::byte> file_bytes_;
  std::vector<std::byte> panel_bytes_;
  Matrix file_;
  Matrix panel_;
};

}  // namespace leanstream::kernels
