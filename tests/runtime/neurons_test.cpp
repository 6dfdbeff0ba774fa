#include "runtime/neurons.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/runtime/runtime_fixture.h"

namespace leanstream::runtime {
namespace {

std::vector<uint32_t> marked(const std::vector<float>& hidden, const std::vector<float>& norms, uint32_t count) {
  std::vector<uint64_t> keys(hidden.size()), bitmap((hidden.size() + 63) / 64, UINT64_MAX);
  mark_most_important(hidden, norms, count, keys, bitmap);
  std::vector<uint32_t> neurons;
  for (uint32_t j = 0; j < bitmap.size() * 64; ++j)
    if (bitmap[j / 64] >> (j % 64) & 1) neurons.push_back(j);
  return neurons;
}

std::vector<uint32_t> sorted_and_cut(const std::vector<float>& hidden, const std::vector<float>& norms,
                                     uint32_t count) {
  std::vector<uint32_t> order(hidden.size());
  std::iota(order.begin(), order.end(), 0);
  const auto importance = [&](uint32_t j) { return std::fabs(hidden[j]) * norms[j]; };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return importance(a) > importance(b); });
  order.resize(std::min<size_t>(count, order.size()));
  std::erase_if(order, [&](uint32_t j) { return importance(j) == 0; });
  std::sort(order.begin(), order.end());
  return order;
}

TEST(MostImportant, are_exactly_those_of_a_sort) {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const uint32_t n = 1 + random() % 300;
    std::vector<float> hidden(n), norms(n);
    for (uint32_t j = 0; j < n; ++j) {
      hidden[j] = static_cast<float>(static_cast<int>(random() % 9) - 4);  // many ties, many zeros
      norms[j] = static_cast<float>(1 + random() % 3);
    }
    const uint32_t count = random() % (n + 2);
    EXPECT_EQ(marked(hidden, norms, count), sorted_and_cut(hidden, norms, count)) << i;
  }
}

TEST(MostImportant, prefer_the_lower_number_and_leave_out_what_has_no_importance) {
  EXPECT_EQ(marked({1, -1, 1, 1}, {1, 1, 1, 1}, 2), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(marked({0, -0.0f, 3, 0}, {1, 1, 1, 1}, 3), (std::vector<uint32_t>{2}));
  EXPECT_EQ(marked({NAN, 1, INFINITY}, {1, 1, 1}, 3), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(marked({1, 2}, {5, 1}, 1), (std::vector<uint32_t>{0}));
}

TEST(Neurons, have_the_norms_of_their_down_columns) {
  const auto runtime = test::create_runtime();
  const auto model = test::open_model(*runtime, leanstream::test::tiny_model_path());
  const model::Config& config = *model->config();
  const std::vector<float> norms = test::must(down_norms(model->file(), config, runtime->kernels(), runtime->team()));
  ASSERT_EQ(norms.size(), size_t{config.n_layers} * config.d_ff);
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const gguf::TensorInfo* down = model->file().find_tensor("blk." + std::to_string(layer) + ".ffn_down.weight");
    std::vector<float> weights(down->element_count());  // [d_model, d_ff] f32
    ASSERT_TRUE(model->file().read_tensor(*down, 0, std::as_writable_bytes(std::span(weights))).ok());
    for (uint32_t j = 0; j < config.d_ff; ++j) {
      double sum = 0;
      for (uint32_t row = 0; row < config.d_model; ++row) {
        const double w = weights[size_t{row} * config.d_ff + j];
        sum += w * w;
      }
      // Rounded once to float.
      EXPECT_FLOAT_EQ(norms[size_t{layer} * config.d_ff + j], static_cast<float>(std::sqrt(sum)));
    }
  }
}

TEST(Neurons, have_the_bytes_of_their_rows_and_columns) {
  const auto runtime = test::create_runtime();
  const auto model = test::open_model(*runtime, leanstream::test::tiny_model_path());
  const model::Config& config = *model->config();
  EXPECT_EQ(test::must(neuron_bytes(model->file(), config)),
            std::vector<uint32_t>(config.n_layers, 3 * config.d_model * sizeof(float)));
}

}  // namespace
}  // namespace leanstream::runtime
