#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/reference/quantize.h"
#include "tests/kernels/matrix_data.h"

namespace leanstream::kernels {
namespace {

// Every test runs for each weight type on each table that this CPU has.
using TypeAndTable = std::tuple<WeightType, const Kernels*>;

class Matmul : public testing::TestWithParam<TypeAndTable> {
 protected:
  WeightType type() const { return std::get<0>(GetParam()); }
  const Kernels& kernels() const { return *std::get<1>(GetParam()); }
  uint32_t block() const { return traits(type()).block_elements; }

  // Columns around the sizes where the kernels change course: a block, a sum group, a tail.
  std::vector<uint32_t> column_counts() const {
    if (is_float(type())) return {1, 7, 45, 129, 1024, 1063};
    if (block() == 32) return {32, 96, 1024, 1056, 2208};
    return {256, 768, 1024, 1280, 2304};
  }

  std::mt19937 random_{20260917};
};

constexpr float kUntouched = -7.25f;

std::vector<float> run(decltype(Kernels::matmul) matmul, const Matrix& w, const Activations& x, uint32_t row_begin,
                       uint32_t row_end, size_t stride) {
  std::vector<float> out(x.count * stride, kUntouched);
  matmul(w, x, row_begin, row_end, out.data(), stride);
  return out;
}

// Equality of bits; says where the first difference is.
testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b, size_t stride) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return testing::AssertionFailure() << "vector " << i / stride << ", row " << i % stride << ": " << a[i]
                                         << " is not " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

TEST_P(Matmul, gives_the_bits_of_the_scalar_twin_in_both_layouts_for_any_count) {
  for (const uint32_t cols : column_counts()) {
    const uint32_t rows = 16 * (1 + random_() % 5) + random_() % 16 + 1;  // a part of a panel at the end
    const TestMatrix w(type(), rows, cols, random_);
    const TestVectors x(67, cols, random_);
    const size_t stride = rows + 3;
    const std::vector<float> expected = run(reference::matmul, w.in(Layout::kFile), x.view(), 0, rows, stride);
    for (const uint32_t count : {1, 2, 3, 8, 15, 16, 17, 32, 64, 67}) {
      const std::vector<float> first(expected.begin(), expected.begin() + count * stride);
      for (const Layout layout : {Layout::kFile, Layout::kPanel}) {
        const std::vector<float> actual = run(kernels().matmul, w.in(layout), x.view(count), 0, rows, stride);
        ASSERT_TRUE(same_bits(actual, first, stride))
            << rows << " x " << cols << ", " << count << " vectors, layout " << static_cast<int>(layout);
      }
    }
  }
}

TEST_P(Matmul, writes_only_the_rows_asked_for_and_gives_the_same_bits_for_any_split) {
  const uint32_t rows = 16 * 9 + 5, cols = is_float(type()) ? 1100 : 1280;
  const TestMatrix w(type(), rows, cols, random_);
  const TestVectors x(5, cols, random_);
  for (const uint32_t count : {1u, 5u}) {
    const std::vector<float> whole = run(kernels().matmul, w.in(Layout::kPanel), x.view(count), 0, rows, rows);
    for (const Layout layout : {Layout::kFile, Layout::kPanel}) {
      for (const auto& [begin, end] : {std::pair(0u, 16u), std::pair(16u, 128u), std::pair(96u, rows)}) {
        std::vector<float> expected(whole.size(), kUntouched);
        for (uint32_t n = 0; n < count; ++n) {
          std::copy_n(whole.begin() + n * rows + begin, end - begin, expected.begin() + n * rows + begin);
        }
        EXPECT_TRUE(same_bits(run(kernels().matmul, w.in(layout), x.view(count), begin, end, rows), expected, rows))
            << "rows " << begin << " to " << end << " of " << rows;
      }
    }
  }
}

TEST_P(Matmul, reads_file_rows_at_any_alignment) {
  const uint32_t rows = 33, cols = 512;
  const TestMatrix w(type(), rows, cols, random_);
  const TestVectors x(3, cols, random_);
  std::vector<std::byte> shifted(w.file_bytes().size() + 1);
  std::copy(w.file_bytes().begin(), w.file_bytes().end(), shifted.begin() + 1);
  Matrix odd = w.in(Layout::kFile);
  odd.data = shifted.data() + 1;
  EXPECT_TRUE(same_bits(run(kernels().matmul, odd, x.view(), 0, rows, rows),
                        run(kernels().matmul, w.in(Layout::kFile), x.view(), 0, rows, rows), rows));
}

TEST_P(Matmul, a_nan_in_one_vector_reaches_all_its_rows_and_no_other_vector) {
  const uint32_t rows = 20, cols = 512;
  const TestMatrix w(type(), rows, cols, random_);
  std::vector<float> numbers = random_floats(3 * cols, random_);
  numbers[cols + 77] = std::numeric_limits<float>::quiet_NaN();
  std::vector<int8_t> q8(numbers.size());
  std::vector<float> scale(numbers.size() / 32);
  std::vector<int32_t> sum16(numbers.size() / 16);
  kernels().quantize(numbers.data(), 3 * cols, q8.data(), scale.data(), sum16.data());
  const Activations x{3, cols, numbers.data(), q8.data(), scale.data(), sum16.data()};
  const std::vector<float> out = run(kernels().matmul, w.in(Layout::kPanel), x, 0, rows, rows);
  for (uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i / rows == 1) << "number " << i;
}

TEST_P(Matmul, packs_the_panels_of_the_scalar_twin) {
  for (const uint32_t cols : column_counts()) {
    for (const uint32_t rows : {1u, 16u, 17u, 31u}) {
      const TestMatrix w(type(), rows, cols, random_);
      std::vector<std::byte> panels(w.panel_bytes().size(), std::byte{0xee});
      const size_t stride = row_bytes(type(), cols);
      for (uint32_t p = 0; p < panel_count(rows); ++p) {
        kernels().pack_panel(type(), cols, std::min(kPanelRows, rows - p * kPanelRows),
                             w.file_bytes().data() + p * kPanelRows * stride, stride,
                             panels.data() + p * panel_bytes(type(), cols));
      }
      ASSERT_EQ(panels, w.panel_bytes()) << rows << " x " << cols;
    }
  }
}

TEST_P(Matmul, dequantizes_a_row_of_either_layout_to_the_bits_of_the_scalar_twin) {
  const float factor = 22.627417f;  // gemma scales its embeddings
  for (const uint32_t cols : column_counts()) {
    const uint32_t rows = 35;
    const TestMatrix w(type(), rows, cols, random_);
    for (const uint32_t row : {0u, 15u, 16u, 34u}) {
      std::vector<float> expected(cols);
      reference::dequantize(type(), w.file_bytes().data() + row * row_bytes(type(), cols), cols, expected.data());
      for (float& number : expected) number *= factor;
      for (const Layout layout : {Layout::kFile, Layout::kPanel}) {
        std::vector<float> actual(cols, kUntouched);
        kernels().dequantize_row(w.in(layout), row, factor, actual.data());
        ASSERT_TRUE(same_bits(actual, expected, cols)) << "row " << row << " of " << cols << " columns";
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<TypeAndTable>& tested) {
  std::string name = std::string(traits(std::get<0>(tested.param)).name) + "_" + std::get<1>(tested.param)->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<WeightType> all_types() {
  std::vector<WeightType> types;
  for (const WeightTypeTraits& t : kWeightTypes) types.push_back(t.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Matmul,
                         testing::Combine(testing::ValuesIn(all_types()),
                                          testing::ValuesIn(all_kernels().begin(), all_kernels().end())),
                         name_of);

// The twin itself, against products of the dequantised numbers in double precision.
class ReferenceMatmul : public testing::TestWithParam<WeightType> {};

TEST_P(ReferenceMatmul, is_the_product_of_the_dequantised_numbers_within_rounding) {
  std::mt19937 random(7);
  const WeightType type = GetParam();
  const uint32_t rows = 24, cols = 2304, count = 3;
  const TestMatrix w(type, rows, cols, random);
  const TestVectors x(count, cols, random);
  const Activations view = x.view();
  const std::vector<float> out = run(reference::matmul, w.in(Layout::kFile), view, 0, rows, rows);
  std::vector<float> weights(cols);
  for (uint32_t r = 0; r < rows; ++r) {
    reference::dequantize(type, w.file_bytes().data() + r * row_bytes(type, cols), cols, weights.data());
    for (uint32_t n = 0; n < count; ++n) {
      double exact = 0.0, magnitude = 0.0;
      for (uint32_t k = 0; k < cols; ++k) {
        const size_t at = size_t{n} * cols + k;
        const double number = is_float(type) ? view.f32[at] : double{view.scale[at / 32]} * view.q8[at];
        exact += weights[k] * number;
        magnitude += std::fabs(weights[k] * number);
      }
      // 1024 terms and 3 group sums round to 2^-24 of a partial sum each. Partial sums stay below `magnitude`, except that
      // codes and offsets are summed apart, and may be larger than the numbers that they make: four times covers it.
      const double bound = 1027 * 0x1p-24 * magnitude * (is_float(type) ? 1.0 : 4.0);
      EXPECT_NEAR(out[n * rows + r], exact, bound) << "row " << r << ", vector " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReferenceMatmul, testing::ValuesIn(all_types()),
                         [](const auto& tested) { return std::string(traits(tested.param).name); });

class Quantize : public testing::TestWithParam<const Kernels*> {
 protected:
  // What the table's function and the twin make of x, as one string of bytes each.
  static std::string bytes_of(decltype(Kernels::quantize) quantize, const std::vector<float>& x) {
    std::vector<int8_t> q8(x.size(), 99);
    std::vector<float> scale(x.size() / 32);
    std::vector<int32_t> sum16(x.size() / 16);
    quantize(x.data(), static_cast<uint32_t>(x.size()), q8.data(), scale.data(), sum16.data());
    std::string bytes(reinterpret_cast<const char*>(q8.data()), q8.size());
    bytes.append(reinterpret_cast<const char*>(scale.data()), scale.size() * sizeof(float));
    return bytes.append(reinterpret_cast<const char*>(sum16.data()), sum16.size() * sizeof(int32_t));
  }
  void expect_same(const std::vector<float>& x) {
    EXPECT_EQ(bytes_of(GetParam()->quantize, x), bytes_of(reference::quantize, x));
  }
};

TEST_P(Quantize, gives_the_bits_of_the_scalar_twin) {
  std::mt19937 random(11);
  std::vector<float> x = random_floats(32 * 4096, random);
  std::uniform_int_distribution<int> exponent(-100, 100);
  for (size_t i = 0; i < x.size(); i += 32) {
    const float scale = std::ldexp(1.0f, exponent(random));
    for (size_t k = i; k < i + 32; ++k) x[k] *= scale;
  }
  expect_same(x);
}

TEST_P(Quantize, rounds_halves_to_the_even_number) {
  std::vector<float> x(32, 0.0f);
  for (int i = 0; i < 31; ++i) x[i] = static_cast<float>(i) - 15.5f;
  x[31] = 127.0f;
  expect_same(x);
}

TEST_P(Quantize, makes_zeros_of_numbers_too_small_for_a_factor) {
  std::vector<float> x(64, 0.0f);
  x[3] = std::numeric_limits<float>::denorm_min();
  x[40] = 3e-37f;
  expect_same(x);
  std::vector<float> zeros(64, -0.0f);
  expect_same(zeros);
}

TEST_P(Quantize, marks_a_block_with_an_infinity_or_a_nan_by_its_scale) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(96, 1.0f);
    x[45] = bad;
    std::vector<int8_t> q8(96);
    std::vector<float> scale(3);
    std::vector<int32_t> sum16(6);
    GetParam()->quantize(x.data(), 96, q8.data(), scale.data(), sum16.data());
    EXPECT_EQ(scale[0], 1.0f / 127.0f);
    EXPECT_TRUE(std::isnan(scale[1]));
    EXPECT_EQ(scale[2], 1.0f / 127.0f);
    expect_same(x);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Quantize, testing::ValuesIn(all_kernels().begin(), all_kernels().end()),
                         [](const auto& tested) {
                           std::string name = tested.param->name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace leanstream::kernels
