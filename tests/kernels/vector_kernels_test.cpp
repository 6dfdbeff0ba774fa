#include "kernels/cpu/vector_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/vector_tables.h"
#include "kernels/reference/vector_ops.h"

namespace leanstream::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kRounding = 0x1p-24;  // largest relative error of one float operation
constexpr uint32_t kSizes[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 100, 576, 1023, 4097};

// Each test runs for every Highway target of this CPU.
class VectorKernelsTest : public testing::TestWithParam<VectorTable> {
 protected:
  const VectorKernels& kernels() const { return *GetParam().kernels; }

  std::vector<float> normal(size_t n, float deviation = 1.0f) {
    std::normal_distribution<float> distribution(0.0f, deviation);
    std::vector<float> x(n);
    for (float& value : x) value = distribution(random_);
    return x;
  }

  std::mt19937 random_{17};
};

std::string target_name(const testing::TestParamInfo<VectorTable>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Targets, VectorKernelsTest, testing::ValuesIn(vector_tables()), target_name);

TEST(VectorLevels, forcing_a_lesser_level_gives_a_table_that_this_cpu_runs) {
  EXPECT_EQ(&vector_kernels(), vector_tables().front().kernels);
  for (const VectorLevel level : {VectorLevel::kSse4, VectorLevel::kAvx2, VectorLevel::kBest}) {
    float x[] = {1.0f, 2.0f};
    vector_kernels(level).add(x, x, 2);
    EXPECT_EQ(x[1], 4.0f);
  }
}

// Buffers start one float past their alignment, so that whole-vector accesses are unaligned.

TEST_P(VectorKernelsTest, rms_norm_is_within_four_roundings) {
  for (const uint32_t n : kSizes) {
    const std::vector<float> x = normal(n + 1, 3.0f), weight = normal(n + 1);
    std::vector<float> out(n + 1), expected(n + 1);
    kernels().rms_norm(&x[1], &weight[1], n, 1e-5f, &out[1]);
    reference::rms_norm(&x[1], &weight[1], n, 1e-5f, &expected[1]);
    // The scale, two products, and the twin's own rounding; the sum is in double.
    for (uint32_t i = 1; i <= n; ++i)
      ASSERT_NEAR(out[i], expected[i], 4 * kRounding * std::abs(expected[i])) << "n " << n << ", i " << i;
  }
}

TEST_P(VectorKernelsTest, rms_norm_works_in_place) {
  std::vector<float> x = normal(100);
  const std::vector<float> weight = normal(100);
  std::vector<float> out(100);
  kernels().rms_norm(x.data(), weight.data(), 100, 1e-6f, out.data());
  kernels().rms_norm(x.data(), weight.data(), 100, 1e-6f, x.data());
  EXPECT_EQ(x, out);
}

TEST_P(VectorKernelsTest, add_is_exact) {
  for (const uint32_t n : kSizes) {
    std::vector<float> x = normal(n + 1), y = normal(n + 1), expected = x;
    kernels().add(&x[1], &y[1], n);
    reference::add(&expected[1], &y[1], n);
    ASSERT_EQ(x, expected);
  }
}

// The relative error of act(gate): hn::Exp is within one unit in the last place (2 roundings); the sum, the quotient,
// the product with `up` and the twin's rounding are one each. GELU's exponent t has five roundings before that, and an
// error of its exponent is a relative error of the exponential.
double glu_roundings(GluActivation activation, double x) {
  const double t = 1.5957691216 * (x + 0.044715 * x * x * x);
  return activation == GluActivation::kGeluTanh ? 6 + 5 * std::abs(t) : 6;
}

TEST_P(VectorKernelsTest, glu_is_within_its_roundings) {
  for (const GluActivation activation : {GluActivation::kSilu, GluActivation::kGeluTanh, GluActivation::kRelu}) {
    for (const uint32_t n : kSizes) {
      std::vector<float> gate = normal(n + 1, n % 2 == 0 ? 1.0f : 30.0f);
      const std::vector<float> up = normal(n + 1);
      std::vector<float> out(n + 1), expected(n + 1);
      kernels().glu(activation, &gate[1], &up[1], n, &out[1]);
      reference::glu(activation, &gate[1], &up[1], n, &expected[1]);
      for (uint32_t i = 1; i <= n; ++i) {
        // Below: what exp overflows on (results under 1e-36), and the cancellation in the twin's 1 + tanh.
        const double tiny =
            std::abs(up[i]) * (1e-36 + (activation == GluActivation::kGeluTanh ? 1e-15 : 0.0) * std::abs(gate[i]));
        const double roundings = glu_roundings(activation, gate[i]);
        ASSERT_NEAR(out[i], expected[i], roundings * kRounding * std::abs(expected[i]) + tiny)
            << "activation " << static_cast<int>(activation) << ", gate " << gate[i];
      }
    }
  }
}

TEST_P(VectorKernelsTest, glu_gives_an_element_the_same_bits_wherever_a_range_is_cut) {
  for (const GluActivation activation : {GluActivation::kSilu, GluActivation::kGeluTanh, GluActivation::kRelu}) {
    const std::vector<float> gate = normal(100), up = normal(100);
    std::vector<float> whole(100), parts(100);
    kernels().glu(activation, gate.data(), up.data(), 100, whole.data());
    for (const uint32_t cut : {1u, 13u, 50u, 99u}) {
      kernels().glu(activation, gate.data(), up.data(), cut, parts.data());
      kernels().glu(activation, &gate[cut], &up[cut], 100 - cut, &parts[cut]);
      ASSERT_EQ(whole, parts) << "cut at " << cut;
    }
  }
}

TEST_P(VectorKernelsTest, glu_works_in_place_of_either_input) {
  const std::vector<float> gate = normal(37), up = normal(37);
  std::vector<float> expected(37), over_gate = gate, over_up = up;
  kernels().glu(GluActivation::kSilu, gate.data(), up.data(), 37, expected.data());
  kernels().glu(GluActivation::kSilu, over_gate.data(), up.data(), 37, over_gate.data());
  kernels().glu(GluActivation::kSilu, gate.data(), over_up.data(), 37, over_up.data());
  EXPECT_EQ(over_gate, expected);
  EXPECT_EQ(over_up, expected);
}

TEST_P(VectorKernelsTest, glu_keeps_nan_and_survives_huge_gates) {
  for (const GluActivation activation : {GluActivation::kSilu, GluActivation::kGeluTanh, GluActivation::kRelu}) {
    const std::vector<float> gate(19, kNan), up(19, 1.0f);
    std::vector<float> out(19);
    kernels().glu(activation, gate.data(), up.data(), 19, out.data());
    for (const float value : out) EXPECT_TRUE(std::isnan(value));

    const float huge[] = {-1e4f, 1e4f, -200.0f, 200.0f, -104.5f, 88.9f, -0.0f, 0.0f};
    const std::vector<float> ones(8, 1.0f);
    kernels().glu(activation, huge, ones.data(), 8, out.data());
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(out[i], std::max(huge[i], 0.0f), 1e-30f) << huge[i];
  }
}

TEST_P(VectorKernelsTest, rope_is_within_its_roundings_and_leaves_the_rest_alone) {
  for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalves}) {
    for (const uint32_t n_rot : {2u, 6u, 32u, 64u, 100u, 128u}) {
      std::vector<float> x = normal(n_rot + 5);
      std::vector<float> cos(n_rot / 2), sin(n_rot / 2);
      for (uint32_t i = 0; i < n_rot / 2; ++i) {
        cos[i] = std::cos(0.3f * i);
        sin[i] = std::sin(0.3f * i);
      }
      std::vector<float> expected = x;
      const std::vector<float> before = x;
      kernels().rope(style, cos.data(), sin.data(), n_rot, &x[1]);
      reference::rope(style, cos.data(), sin.data(), n_rot, &expected[1]);
      // Two products, a sum and the twin's rounding; no number of a pair exceeds 5.
      for (uint32_t i = 1; i <= n_rot; ++i) ASSERT_NEAR(x[i], expected[i], 4 * kRounding * 10.0) << i;
      EXPECT_EQ(x[0], before[0]);
      for (size_t i = n_rot + 1; i < x.size(); ++i) EXPECT_EQ(x[i], before[i]);
    }
  }
}

TEST_P(VectorKernelsTest, store_kv_writes_the_bytes_of_the_twin) {
  std::vector<float> x = normal(256, 0.1f);
  // Ties, subnormal halves, the border to infinity, signed zero.
  const float special[] = {1.0f + 0x1p-11f, 1.0f + 0x3p-11f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 65519.0f,
                           65520.0f,        -65504.0f,       0x1p-14f, -0.0f,    1e-30f,     -0x1.ffcp-15f};
  std::copy(std::begin(special), std::end(special), x.begin() + 64);
  std::fill_n(x.begin() + 128, 32, 0.0f);
  for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
    for (const uint32_t head_dim : {32u, 64u, 96u, 256u}) {
      std::vector<std::byte> out(kv_head_bytes(type, head_dim)), expected(out.size());
      kernels().store_kv(type, x.data(), head_dim, out.data());
      reference::store_kv(type, x.data(), head_dim, expected.data());
      EXPECT_EQ(out, expected) << "type " << static_cast<int>(type) << ", head_dim " << head_dim;
    }
  }
  std::vector<std::byte> out(2 * 43), expected(2 * 43);
  kernels().store_kv(KvType::kF16, &x[60], 43, out.data());
  reference::store_kv(KvType::kF16, &x[60], 43, expected.data());
  EXPECT_EQ(out, expected);
}

TEST_P(VectorKernelsTest, store_kv_in_q8_0_keeps_a_number_that_is_not_finite_visible) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const uint32_t at : {0u, 5u, 31u}) {
      std::vector<float> x = normal(32), loaded(32);
      x[at] = bad;
      std::vector<std::byte> stored(34);
      kernels().store_kv(KvType::kQ8_0, x.data(), 32, stored.data());
      reference::load_kv(KvType::kQ8_0, stored.data(), 32, loaded.data());
      EXPECT_TRUE(std::isnan(loaded[at]));
    }
  }
}

TEST_P(VectorKernelsTest, argmax_takes_the_smallest_index_on_ties) {
  for (const uint32_t n : kSizes) {
    const std::vector<float> random = normal(n);
    ASSERT_EQ(kernels().argmax(random.data(), n), reference::argmax(random.data(), n));
    ASSERT_EQ(kernels().argmax(std::vector<float>(n, -kInfinity).data(), n), 0);
    for (const uint32_t first : {0u, n / 2, n - 1}) {
      std::vector<float> x(n, -2.0f);
      x[first] = x[n - 1] = 1.0f;
      ASSERT_EQ(kernels().argmax(x.data(), n), first) << "n " << n;
    }
  }
}

TEST_P(VectorKernelsTest, argmax_and_log_sum_exp_report_nan_anywhere) {
  for (const uint32_t n : kSizes) {
    for (const uint32_t at : {0u, n / 3, n - 1}) {
      std::vector<float> x = normal(n);
      x[at] = kNan;
      ASSERT_EQ(kernels().argmax(x.data(), n), -1) << "n " << n << ", at " << at;
      ASSERT_TRUE(std::isnan(kernels().log_sum_exp(x.data(), n)));
    }
  }
}

TEST_P(VectorKernelsTest, log_sum_exp_is_within_float_exponentials) {
  for (const uint32_t n : kSizes) {
    const std::vector<float> x = normal(n, 5.0f);
    // A term's relative error: two roundings of hn::Exp, and |x - max| < 50 of the subtraction. That of the sum is no
    // larger, and becomes the absolute error of the logarithm.
    EXPECT_NEAR(kernels().log_sum_exp(x.data(), n), reference::log_sum_exp(x.data(), n), 52 * kRounding);
  }
}

TEST_P(VectorKernelsTest, sum_words_adds_every_word) {
  std::vector<uint64_t> words(300);
  for (size_t i = 0; i < words.size(); ++i) words[i] = 0x9e3779b97f4a7c15u * (i + 1);
  for (size_t n = 0; n <= words.size(); ++n)
    ASSERT_EQ(kernels().sum_words(words.data(), n), std::accumulate(words.begin(), words.begin() + n, uint64_t{0}));
}

TEST_P(VectorKernelsTest, log_sum_exp_takes_infinities) {
  const std::vector<float> none(40, -kInfinity);
  EXPECT_EQ(kernels().log_sum_exp(none.data(), 40), -kInfinity);
  std::vector<float> one = none;
  one[33] = 2.5f;
  EXPECT_EQ(kernels().log_sum_exp(one.data(), 40), 2.5);
  one[3] = kInfinity;
  EXPECT_EQ(kernels().log_sum_exp(one.data(), 40), kInfinity);
}

}  // namespace
}  // namespace leanstream::kernels
