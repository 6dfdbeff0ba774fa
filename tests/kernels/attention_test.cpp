#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/abi/half.h"
#include "kernels/cpu/vector_tables.h"
#include "kernels/reference/vector_ops.h"

namespace leanstream::kernels {
namespace {

constexpr double kRounding = 0x1p-24;  // largest relative error of one float operation

struct Shape {
  KvType type = KvType::kF16;
  uint32_t head_dim = 64;
  uint32_t n_queries = 1;
  uint32_t begin = 0;
  uint32_t end = 1;
  uint32_t n_positions = 1;
  uint32_t window = 0;

  friend std::ostream& operator<<(std::ostream& out, const Shape& s) {
    return out << (s.type == KvType::kF16 ? "f16" : "q8_0") << " head_dim " << s.head_dim << ", queries " << s.n_queries
               << ", rows [" << s.begin << ", " << s.end << "), positions " << s.n_positions << ", window " << s.window;
  }
};

// Owns what a task borrows. Rows of the cache lie a few bytes further apart than they are long.
class Problem {
 public:
  explicit Problem(const Shape& shape, uint32_t seed = 1) : shape_(shape) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const uint32_t rows = shape.end + shape.n_positions - 1;
    stride_ = kv_head_bytes(shape.type, shape.head_dim) + 6;
    q.resize(size_t{shape.n_positions} * position_stride());
    for (float& value : q) value = normal(random);
    std::vector<float> row(shape.head_dim);
    for (std::vector<std::byte>* cache : {&k, &v}) {
      cache->resize(rows * stride_);
      for (uint32_t t = 0; t < rows; ++t) {
        for (float& value : row) value = normal(random);
        reference::store_kv(shape.type, row.data(), shape.head_dim, cache->data() + t * stride_);
      }
    }
  }

  // Between the heads of two positions lie 3 floats that are not the task's.
  size_t position_stride() const { return size_t{shape_.n_queries} * shape_.head_dim + 3; }
  size_t row_stride() const { return stride_; }

  AttentionTask task(std::vector<float>& out) const {
    out.assign(q.size(), 0.0f);
    AttentionTask task;
    task.kv_type = shape_.type;
    task.head_dim = shape_.head_dim;
    task.n_queries = shape_.n_queries;
    task.q = q.data();
    task.k = k.data();
    task.v = v.data();
    task.kv_stride_bytes = stride_;
    task.begin = shape_.begin;
    task.end = shape_.end;
    task.scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
    task.out = out.data();
    task.n_positions = shape_.n_positions;
    task.position_stride = position_stride();
    task.window = shape_.window;
    return task;
  }

  std::vector<float> q;
  std::vector<std::byte> k, v;

 private:
  Shape shape_;
  size_t stride_ = 0;
};

// Each test runs for every Highway target of this CPU.
class AttentionTest : public testing::TestWithParam<VectorTable> {
 protected:
  std::vector<float> attend(const Problem& problem) const {
    std::vector<float> out;
    GetParam().kernels->attention(problem.task(out));
    return out;
  }
};

std::string target_name(const testing::TestParamInfo<VectorTable>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Targets, AttentionTest, testing::ValuesIn(vector_tables()), target_name);

// Worst cases, with numbers of a normal distribution below 5 in magnitude. A score: head_dim products, at least four
// lanes side by side, and the tree that joins them; relative to the sum of |q k| scale, in which |q| |k| of 1 is common
// and 2 generous. The error of a score is the relative error of its weight, numerator and denominator alike. Then each
// row adds one rounding to the sum of weights and one to the weighted sum; `out` is an average of |v| < 5.
double bound(const Shape& s) {
  const double score = (s.head_dim / 4.0 + 8) * kRounding * 2 * std::sqrt(static_cast<double>(s.head_dim));
  const double sums = 2.0 * (s.end + s.n_positions) * kRounding;
  return 5 * (2 * score + sums + 8 * kRounding);
}

TEST_P(AttentionTest, agrees_with_the_twin) {
  constexpr KvType kF16 = KvType::kF16, kQ8 = KvType::kQ8_0;
  const Shape shapes[] = {
      {kF16, 64, 1, 0, 1},     {kF16, 64, 1, 0, 31},     {kF16, 128, 4, 0, 32},        {kF16, 128, 4, 0, 33},
      {kF16, 128, 4, 0, 300},  {kF16, 128, 7, 5, 101},   {kF16, 96, 2, 31, 33},        {kF16, 80, 3, 32, 64},
      {kF16, 256, 2, 63, 170}, {kF16, 320, 3, 7, 90},    {kF16, 8, 5, 0, 45},          {kF16, 1, 1, 0, 40},
      {kF16, 33, 2, 3, 70},    {kF16, 2048, 2, 0, 37},   {kF16, 64, 64, 0, 50},        {kF16, 128, 1, 0, 40, 40},
      {kF16, 64, 3, 0, 1, 70}, {kF16, 64, 2, 5, 40, 11}, {kF16, 128, 4, 0, 60, 9, 20}, {kF16, 72, 5, 3, 9, 50, 33},
      {kQ8, 32, 1, 0, 5},      {kQ8, 128, 4, 0, 200},    {kQ8, 64, 7, 33, 95},         {kQ8, 256, 1, 0, 64},
      {kQ8, 352, 2, 0, 70},    {kQ8, 96, 2, 0, 30, 20},  {kQ8, 128, 4, 2, 60, 9, 20},
  };
  for (const Shape& shape : shapes) {
    const Problem problem(shape);
    std::vector<float> expected;
    reference::attention(problem.task(expected));
    const std::vector<float> out = attend(problem);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], bound(shape)) << shape << ", i " << i;
  }
}

TEST_P(AttentionTest, gives_a_head_the_same_bits_alone_and_among_others) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
    const Shape shape{type, 96, 19, 11, 150};
    const Problem problem(shape);
    std::vector<float> together, alone;
    GetParam().kernels->attention(problem.task(together));
    AttentionTask task = problem.task(alone);
    task.n_queries = 1;
    for (uint32_t head = 0; head < shape.n_queries; ++head) {
      GetParam().kernels->attention(task);
      task.q += shape.head_dim;
      task.out += shape.head_dim;
    }
    EXPECT_EQ(together, alone);
  }
}

TEST_P(AttentionTest, gives_a_position_the_same_bits_alone_and_among_others) {
  const Shape shapes[] = {{KvType::kF16, 128, 1, 0, 1, 100},     {KvType::kF16, 64, 4, 0, 37, 21},
                          {KvType::kQ8_0, 64, 3, 9, 60, 30},     {KvType::kF16, 64, 3, 0, 20, 90, 40},
                          {KvType::kQ8_0, 128, 2, 13, 70, 9, 5}, {KvType::kF16, 320, 3, 0, 30, 40}};
  for (const Shape& shape : shapes) {
    const Problem problem(shape);
    std::vector<float> together, alone;
    const AttentionTask task = problem.task(together);
    GetParam().kernels->attention(task);
    problem.task(alone);
    for (uint32_t position = 0; position < shape.n_positions; ++position) {
      AttentionTask one = task;
      one.q = task.q + position * task.position_stride;
      one.out = alone.data() + position * task.position_stride;
      one.begin = task.first_row(position);
      one.end = task.end + position;
      one.n_positions = 1;
      one.window = 0;
      GetParam().kernels->attention(one);
    }
    EXPECT_EQ(together, alone) << shape;
  }
}

TEST_P(AttentionTest, reads_every_half_as_it_is) {
  // With one row, the weight is 1 and the output is the row.
  constexpr uint32_t kDim = 1024;
  Problem problem({KvType::kF16, kDim});
  for (uint32_t first = 0; first < 0x10000; first += kDim) {
    for (uint32_t i = 0; i < kDim; ++i) {
      const uint16_t half = static_cast<uint16_t>(first + i);
      std::memcpy(problem.v.data() + 2 * i, &half, sizeof half);
    }
    const std::vector<float> out = attend(problem);
    for (uint32_t i = 0; i < kDim; ++i) {
      const float expected = half_to_float(static_cast<uint16_t>(first + i));
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(out[i])) << first + i;
      else
        ASSERT_EQ(out[i], expected) << first + i;
    }
  }
}

void set_half(Problem& problem, std::vector<std::byte>& cache, uint32_t row, float value) {
  const uint16_t half = float_to_half(value);
  std::memcpy(cache.data() + row * problem.row_stride(), &half, sizeof half);
}

TEST_P(AttentionTest, lets_nan_in_a_seen_key_through_to_every_output) {
  for (const uint32_t row : {0u, 31u, 40u, 69u}) {
    Problem problem({KvType::kF16, 64, 2, 0, 70});
    set_half(problem, problem.k, row, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> out = attend(problem);
    for (uint32_t i = 0; i < 2 * 64; ++i) ASSERT_TRUE(std::isnan(out[i])) << "row " << row << ", i " << i;
  }
}

TEST_P(AttentionTest, never_looks_at_rows_outside_the_range) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Problem problem({KvType::kF16, 64, 2, 0, 40, 6, 30});
  const std::vector<float> before = attend(problem);
  // Position p sees rows [10 + p, 40 + p).
  for (const uint32_t row : {9u, 10u, 42u}) {
    set_half(problem, problem.k, row, nan);
    set_half(problem, problem.v, row, nan);
  }
  const std::vector<float> after = attend(problem);
  for (const uint32_t position : {1u, 2u})
    for (uint32_t i = 0; i < 2 * 64; ++i)
      ASSERT_EQ(after[position * problem.position_stride() + i], before[position * problem.position_stride() + i]);
  for (const uint32_t position : {0u, 3u, 4u, 5u}) EXPECT_TRUE(std::isnan(after[position * problem.position_stride()]));
}

TEST_P(AttentionTest, gives_keys_at_minus_infinity_no_weight) {
  const float infinity = std::numeric_limits<float>::infinity();
  Problem problem({KvType::kF16, 64, 1, 0, 70});
  for (float& value : problem.q) value = std::abs(value);
  // The whole first block and row 33: block maxima of minus infinity, and a single one.
  for (uint32_t row = 0; row <= 33; ++row)
    if (row != 32) set_half(problem, problem.k, row, -infinity);
  std::vector<float> expected;
  reference::attention(problem.task(expected));
  const std::vector<float> out = attend(problem);
  for (uint32_t i = 0; i < 64; ++i) ASSERT_NEAR(out[i], expected[i], bound({KvType::kF16, 64, 1, 0, 70}));

  for (uint32_t row = 0; row < 70; ++row) set_half(problem, problem.k, row, -infinity);
  EXPECT_TRUE(std::isnan(attend(problem)[0]));
}

TEST_P(AttentionTest, survives_scores_beyond_the_range_of_exp) {
  Problem problem({KvType::kF16, 64, 2, 0, 100});
  for (float& value : problem.q) value *= 1000.0f;
  std::vector<float> expected;
  reference::attention(problem.task(expected));
  const std::vector<float> out = attend(problem);
  // A score error of 1000 times the usual, but one row takes all the weight.
  for (uint32_t i = 0; i < 2 * 64; ++i) ASSERT_NEAR(out[i], expected[i], 1000 * bound({KvType::kF16, 64, 2, 0, 100}));
}

}  // namespace
}  // namespace leanstream::kernels
