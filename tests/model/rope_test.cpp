#include "model/rope.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace leanstream::model {
namespace {

// Positions inside, at and beyond the usual trained contexts.
constexpr std::array<uint32_t, 4> kPositions = {1, 100, 5000, 9000};
// Floats of cosines near 1: half a unit in the last place, and libm's own.
constexpr float kTolerance = 1e-6f;

struct Angles {
  std::vector<float> cos, sin;
};

Angles angles_at(const RopeTable& table, uint32_t position) {
  Angles a{std::vector<float>(table.pairs()), std::vector<float>(table.pairs())};
  table.fill(position, a.cos.data(), a.sin.data());
  return a;
}

// Compares with an angle, reduced in long double, for every pair and position.
template <typename AngleOf>
void expect_angles(const RopeTable& table, double magnitude, AngleOf&& angle_of) {
  for (const uint32_t position : kPositions) {
    const Angles a = angles_at(table, position);
    for (uint32_t i = 0; i < table.pairs(); ++i) {
      const long double angle = angle_of(position, i);
      EXPECT_NEAR(a.cos[i], static_cast<float>(std::cos(angle) * magnitude), kTolerance) << position << " pair " << i;
      EXPECT_NEAR(a.sin[i], static_cast<float>(std::sin(angle) * magnitude), kTolerance) << position << " pair " << i;
    }
  }
}

Rope plain_rope(uint32_t n_rot, double base) {
  Rope rope;
  rope.n_rot = n_rot;
  rope.freq_base = base;
  return rope;
}

TEST(RopeTable, turns_pair_i_by_position_over_base_to_the_2i_over_n) {
  const Rope rope = plain_rope(64, 10000.0);
  expect_angles(RopeTable(rope, nullptr), 1.0,
                [](uint32_t position, uint32_t i) { return position / std::pow(10000.0L, i / 32.0L); });
}

TEST(RopeTable, linear_scaling_divides_the_position) {
  Rope rope = plain_rope(128, 500000.0);
  rope.freq_scale = 1.0 / 8.0;
  expect_angles(RopeTable(rope, nullptr), 1.0,
                [](uint32_t position, uint32_t i) { return position / 8.0L / std::pow(500000.0L, i / 64.0L); });
}

// The factors that Llama 3.1 files carry, by the published rule: wavelengths beyond 8192 positions are stretched 8
// times, those below 2048 are left alone, a ramp in the wave number between.
TEST(RopeTable, llama3_factors_divide_each_pairs_frequency) {
  const Rope rope = plain_rope(128, 500000.0);
  std::vector<float> factors(64);
  std::vector<long double> expected(64);
  for (uint32_t i = 0; i < 64; ++i) {
    const double frequency = std::pow(500000.0, -(i / 64.0));
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    double factor = 1.0;
    if (wavelength > 8192.0 / 1.0)
      factor = 8.0;
    else if (wavelength > 8192.0 / 4.0) {
      const double smooth = (8192.0 / wavelength - 1.0) / (4.0 - 1.0);
      factor = 1.0 / ((1.0 - smooth) / 8.0 + smooth);
    }
    factors[i] = static_cast<float>(factor);
    expected[i] = std::pow(500000.0L, -(i / 64.0L)) / factors[i];
  }
  expect_angles(RopeTable(rope, factors.data()), 1.0,
                [&](uint32_t position, uint32_t i) { return position * expected[i]; });
}

// Against the formulas of the YaRN paper (arXiv 2309.00071, section 3.2), with the ramp bounds rounded outwards to
// whole pairs as every implementation does: a pair that makes r turns in the original context keeps its frequency where
// r > beta_fast, is interpolated where r < beta_slow.
TEST(RopeTable, yarn_keeps_fast_pairs_and_scales_slow_ones) {
  Rope rope = plain_rope(128, 1000000.0);
  rope.freq_scale = 1.0 / 4.0;
  rope.yarn_ext_factor = 1.0;
  rope.yarn_original_context = 32768;
  rope.magnitude = 0.1 * std::log(4.0) + 1.0;
  const auto pair_of = [&](double turns) {
    return 64.0 * std::log(32768.0 / (turns * 2.0 * std::numbers::pi)) / std::log(1000000.0);
  };
  const double low = std::floor(pair_of(32.0)), high = std::ceil(pair_of(1.0));
  ASSERT_GT(low, 0.0);
  ASSERT_LT(high, 63.0);
  expect_angles(RopeTable(rope, nullptr), rope.magnitude, [&](uint32_t position, uint32_t i) {
    const long double own = std::pow(1000000.0L, -(i / 64.0L));
    long double frequency = own;
    if (i >= high)
      frequency = own / 4.0L;
    else if (i > low)
      frequency = own * (1.0L - 0.75L * (i - low) / (high - low));
    return position * frequency;
  });
}

TEST(RopeTable, position_zero_does_not_turn) {
  const RopeTable table(plain_rope(32, 10000.0), nullptr);
  const Angles a = angles_at(table, 0);
  for (uint32_t i = 0; i < table.pairs(); ++i) {
    EXPECT_EQ(a.cos[i], 1.0f);
    EXPECT_EQ(a.sin[i], 0.0f);
  }
}

}  // namespace
}  // namespace leanstream::model
