#include "scheduler/stream_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scheduler/streamed_model.h"

namespace leanstream::scheduler {
namespace {

using test::ModelFile;
using test::must;
using test::plan_for;
using test::Range;
using test::streamable_shape;

class StreamPlanTest : public testing::Test {
 protected:
  const gguf::Model file = ModelFile(streamable_shape(WeightType::kF16)).open();
  const model::Config config = must(model::Config::from_gguf(file));
  const Range range = test::plan_range(file, config);

  StreamPlan plan(uint64_t budget) const { return plan_for(file, config, budget); }
  std::vector<uint64_t> budgets() const {
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i <= 24; ++i) all.push_back(range.least + (range.most - range.least) * i / 24);
    return all;
  }
};

TEST_F(StreamPlanTest, holds_everything_where_it_fits) {
  EXPECT_FALSE(plan(range.most).streams());
  EXPECT_EQ(plan(range.most).ring_bytes(), 0u);
  EXPECT_TRUE(plan(range.most - 1).streams());
  EXPECT_LT(range.least, range.most / 4) << "the model is too small to say anything";
}

TEST_F(StreamPlanTest, never_takes_more_than_a_budget_that_its_least_fits) {
  for (const uint64_t budget : budgets()) EXPECT_LE(plan(budget).total_bytes(), budget);
}

TEST_F(StreamPlanTest, uses_its_budget_up_to_rounding) {
  for (const uint64_t budget : budgets())
    EXPECT_GT(plan(budget).total_bytes() + 5 * MappedMemory::kAlignment, std::min(budget, range.most));
}

TEST_F(StreamPlanTest, streams_less_the_more_it_may_hold) {
  uint64_t before = range.most;
  for (const uint64_t budget : budgets()) {
    const uint64_t streamed = plan(budget).streamed_bytes;
    EXPECT_LE(streamed, before + 2 * MappedMemory::kAlignment) << "more than rounding to huge pages explains";
    before = streamed;
  }
}

// Every byte of every layer's matrices is resident or in one piece; pieces are in the order of their numbers.
TEST_F(StreamPlanTest, pieces_and_resident_rows_are_the_whole) {
  for (const uint64_t budget : budgets()) {
    const StreamPlan p = plan(budget);
    EXPECT_EQ(p.attention.bytes + p.mlp.bytes, p.attention.resident_bytes + p.mlp.resident_bytes + p.streamed_bytes);
    if (p.pieces.empty()) continue;
    std::vector<int> covered(p.pieces.size());
    model::Weights names;
    const std::vector<model::WeightSlot> slots = model::weight_slots(config, names);
    for (size_t i = 0; i < slots.size(); ++i) {
      const model::StreamedRows& streamed = p.residency.streamed[i];
      if (streamed.rows_per_piece == 0) continue;
      const gguf::TensorInfo& tensor = *file.find_tensor(slots[i].tensor);
      const uint64_t row_bytes = tensor.size_bytes / slots[i].rows;
      EXPECT_EQ(streamed.rows_per_piece % kPanelRows, 0u);
      EXPECT_EQ(streamed.begin % kPanelRows, 0u);
      uint32_t number = streamed.first;
      for (uint64_t row = streamed.begin; row < slots[i].rows;
           row += streamed.rows_per_piece, number += streamed.step) {
        ASSERT_LT(number, p.pieces.size());
        const uint64_t rows = std::min<uint64_t>(streamed.rows_per_piece, slots[i].rows - row);
        EXPECT_EQ(p.pieces[number].offset, tensor.offset + row * row_bytes);
        EXPECT_EQ(p.pieces[number].size_bytes, rows * row_bytes);
        EXPECT_LE(p.pieces[number].size_bytes + 2 * kSlotAlignment - 1, p.slot_bytes + kSlotAlignment);
        ++covered[number];
      }
    }
    EXPECT_TRUE(std::all_of(covered.begin(), covered.end(), [](int n) { return n == 1; }));
  }
}

TEST_F(StreamPlanTest, attention_is_resident_before_any_of_the_mlp) {
  for (const uint64_t budget : budgets()) {
    const StreamPlan p = plan(budget);
    EXPECT_TRUE(p.mlp.resident_bytes == 0 || p.attention.resident_bytes == p.attention.bytes);
  }
  const StreamPlan least = plan(range.least);
  EXPECT_LT(least.attention.resident_bytes, least.attention.bytes);
}

TEST_F(StreamPlanTest, every_layer_holds_about_the_same_of_its_mlp) {
  const StreamPlan p = plan((range.least + range.most) / 2);
  model::Weights names;
  const std::vector<model::WeightSlot> slots = model::weight_slots(config, names);
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].tensor.find("ffn_gate") != std::string::npos) rows.push_back(p.residency.streamed[i].begin);
  const auto [low, high] = std::minmax_element(rows.begin(), rows.end());
  EXPECT_LE(*high - *low, 2 * kPanelRows);
  EXPECT_GT(*low, 0u);
}

TEST(StreamPlan, a_small_model_is_not_streamed) {
  const gguf::Model file = ModelFile(test::TinyShape{}).open();
  const StreamPlan plan = plan_for(file, must(model::Config::from_gguf(file)), 0);
  EXPECT_FALSE(plan.streams());
}

TEST(StreamPlan, a_tied_embedding_stays_resident) {
  test::TinyShape shape = streamable_shape(WeightType::kF16);
  shape.tied = true;
  const gguf::Model file = ModelFile(shape).open();
  const StreamPlan plan = plan_for(file, must(model::Config::from_gguf(file)), 0);
  EXPECT_TRUE(plan.streams());
  EXPECT_FALSE(plan.residency.embedding_by_demand);
  EXPECT_EQ(plan.embedding.bytes, 0u);
  EXPECT_EQ(plan.output.resident_bytes, plan.output.bytes);
}

}  // namespace
}  // namespace leanstream::scheduler
