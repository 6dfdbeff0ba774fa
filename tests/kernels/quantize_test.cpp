#include "kernels/reference/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/abi/half.h"
#include "kernels/reference/blocks.h"

namespace leanstream::reference {
namespace {

std::vector<float> gaussian(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

std::vector<float> there_and_back(WeightType type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes(type, x.size()));
  quantize(type, x.data(), x.size(), bytes.data());
  std::vector<float> y(x.size());
  dequantize(type, bytes.data(), y.size(), y.data());
  return y;
}

bool is_block_type(WeightType type) {
  return !is_float(type);
}

TEST(Half, every_number_survives_the_way_to_float_and_back) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_half(value), bits);
  }
}

TEST(Half, rounds_to_nearest_and_ties_to_even) {
  // Between each pair of neighbours: just below the middle, the middle, just above it.
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const float a = half_to_float(low), b = half_to_float(static_cast<uint16_t>(low + 1));
    const float middle = (a + b) / 2.0f;  // exact: floats have 13 more bits
    EXPECT_EQ(float_to_half(std::nextafter(middle, 0.0f)), low);
    EXPECT_EQ(float_to_half(middle), low % 2 == 0 ? low : low + 1);
    EXPECT_EQ(float_to_half(std::nextafter(middle, INFINITY)), low + 1);
  }
}

TEST(Half, keeps_signs_infinities_and_nans) {
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
  EXPECT_EQ(float_to_half(65519.99f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
}

TEST(Bfloat16, rounds_to_nearest_even_and_keeps_nans) {
  EXPECT_EQ(float_to_bfloat16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1.00390625f), 0x3f80);  // a tie, down to even
  EXPECT_EQ(float_to_bfloat16(1.01171875f), 0x3f82);  // a tie, up to even
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(bfloat16_to_float(0xc040), -3.0f);
}

// Byte i is (7 i^2 + 73 i + 41) mod 251, the halves of a block are 0.5 and 0.25; the figures were computed with
// gguf-py, the format's own Python library.
TEST(Dequantize, agrees_with_the_formats_own_library) {
  struct Expected {
    WeightType type;
    std::vector<int> halves_at;
    double first, last, weighted_sum;  // of (i + 1) * x[i]
  };
  const Expected cases[] = {
      {WeightType::kQ4_0, {0}, -0.5, -3.0, 108.5},         {WeightType::kQ4_1, {0, 2}, 1.25, 5.75, 2447.0},
      {WeightType::kQ5_0, {0}, 2.5, -4.0, 34.0},           {WeightType::kQ5_1, {0, 2}, 2.75, 12.75, 4576.0},
      {WeightType::kQ8_0, {0}, -20.5, 16.5, -2720.0},      {WeightType::kQ2_K, {80, 82}, -0.5, -3.0, 91494.5},
      {WeightType::kQ3_K, {108}, -9.0, 7.5, 99893.0},      {WeightType::kQ4_K, {0, 2}, -1.25, -11.0, 4395858.5},
      {WeightType::kQ5_K, {0, 2}, 13.75, 30.0, 8740638.0}, {WeightType::kQ6_K, {208}, 262.5, -810.0, -373912.5},
  };
  for (const Expected& expected : cases) {
    SCOPED_TRACE(traits(expected.type).name);
    std::vector<std::byte> bytes(traits(expected.type).block_bytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * i * 7 + i * 73 + 41) % 251);
    uint16_t half = 0x3800;  // 0.5
    for (int at : expected.halves_at) {
      std::memcpy(bytes.data() + at, &half, 2);
      half = 0x3400;  // 0.25
    }
    std::vector<float> x(traits(expected.type).block_elements);
    dequantize(expected.type, bytes.data(), x.size(), x.data());
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(i + 1) * x[i];
    EXPECT_EQ(x.front(), expected.first);
    EXPECT_EQ(x.back(), expected.last);
    EXPECT_EQ(sum, expected.weighted_sum);
  }
}

TEST(Blocks, packing_restores_every_bit_that_unpacking_read) {
  std::mt19937 random(1);
  for (const WeightTypeTraits& type : kWeightTypes) {
    if (!is_block_type(type.type)) continue;
    SCOPED_TRACE(type.name);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::byte> bytes(type.block_bytes);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      const Block block = unpack_block(type.type, bytes.data());
      if (std::isnan(block.d) || std::isnan(block.dmin)) continue;  // NaNs may change their payload
      std::vector<std::byte> packed(type.block_bytes, std::byte{0xff});
      pack_block(type.type, block, packed.data());
      EXPECT_EQ(packed, bytes);
    }
  }
}

// Bounds: what the types reach on normally distributed numbers, with 2 % to spare.
TEST(Quantize, error_on_gaussian_weights_is_what_the_bits_allow) {
  const std::pair<WeightType, double> bounds[] = {
      {WeightType::kF32, 0.0},     {WeightType::kF16, 2.2e-4},  {WeightType::kBF16, 1.75e-3},
      {WeightType::kQ4_0, 0.0877}, {WeightType::kQ4_1, 0.080},  {WeightType::kQ5_0, 0.0437},
      {WeightType::kQ5_1, 0.0388}, {WeightType::kQ8_0, 0.0055}, {WeightType::kQ2_K, 0.276},
      {WeightType::kQ3_K, 0.147},  {WeightType::kQ4_K, 0.0730}, {WeightType::kQ5_K, 0.0367},
      {WeightType::kQ6_K, 0.0177}};
  const std::vector<float> x = gaussian(size_t{1} << 16, 7);
  for (const auto& [type, bound] : bounds) {
    SCOPED_TRACE(traits(type).name);
    const std::vector<float> y = there_and_back(type, x);
    double error = 0, power = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      error += (x[i] - y[i]) * (x[i] - y[i]);
      power += x[i] * x[i];
    }
    EXPECT_LE(std::sqrt(error / power), bound);
  }
}

TEST(Quantize, zeros_and_numbers_too_small_for_a_scale_become_zeros) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    if (!is_block_type(type.type)) continue;
    for (float value : {0.0f, -0.0f, 1e-44f, -1e-30f}) {
      for (float y : there_and_back(type.type, std::vector<float>(256, value))) EXPECT_EQ(y, 0.0f) << type.name;
    }
  }
}

TEST(Quantize, a_constant_block_keeps_its_value) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    for (float value : {0.75f, -3.0f}) {
      for (float y : there_and_back(type.type, std::vector<float>(256, value))) {
        EXPECT_NEAR(y, value, std::abs(value) * 0.01) << type.name;  // the scale's rounding
      }
    }
  }
}

TEST(Quantize, a_block_with_a_nan_or_infinity_reads_back_as_nan) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    if (!is_block_type(type.type)) continue;
    for (float poison : {NAN, INFINITY, -INFINITY, 1e30f}) {
      std::vector<float> x = gaussian(512, 3);
      x[100] = poison;
      const std::vector<float> y = there_and_back(type.type, x);
      EXPECT_TRUE(std::isnan(y[100])) << type.name;
      EXPECT_FALSE(std::isnan(y[300])) << type.name;
    }
  }
}

TEST(Quantize, survives_extreme_but_finite_numbers) {
  std::mt19937 random(5);
  for (const WeightTypeTraits& type : kWeightTypes) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> x = gaussian(256, static_cast<uint32_t>(round));
      for (float& value : x) value = std::ldexp(value, static_cast<int>(random() % 60) - 45);
      for (float y : there_and_back(type.type, x)) EXPECT_TRUE(std::isfinite(y)) << type.name;
    }
  }
}

}  // namespace
}  // namespace leanstream::reference
