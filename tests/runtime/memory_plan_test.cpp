#include "runtime/memory_plan.h"

#include <gtest/gtest.h>

#include "engine/load_weights.h"
#include "tests/runtime/tiny_model.h"

namespace leanstream::runtime {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class MemoryPlanTest : public testing::Test {
 protected:
  const gguf::Model file = test::tiny_model().open();
  const model::Config config = *model::Config::from_gguf(file);
  MemoryPlan plan(uint64_t budget, uint32_t context, uint64_t held = 10 * kMiB) const {
    PlanRequest request{file, config, {}};
    request.shape.context = context;
    request.threads = 2;
    request.budget_bytes = budget;
    request.held_bytes = held;
    return *plan_memory(request);
  }
};

TEST_F(MemoryPlanTest, adds_up) {
  const MemoryPlan p = plan(1000 * kMiB, 256);
  EXPECT_EQ(p.total_bytes(), p.weights_bytes + p.kv_bytes + p.buffers_bytes + p.fixed_bytes);
  EXPECT_EQ(p.fixed_bytes, 10 * kMiB);
  EXPECT_GE(p.weights_bytes, *engine::resident_weight_bytes(file, config));
  EXPECT_GE(p.kv_bytes, uint64_t{256} * config.n_layers * config.n_kv_heads * config.head_dim * 2 * 2);
  EXPECT_TRUE(p.fits());
}

TEST_F(MemoryPlanTest, fits_its_own_least_budget_and_nothing_under_its_total) {
  const MemoryPlan p = plan(0, 256);
  EXPECT_FALSE(p.fits());
  EXPECT_TRUE(plan(p.least_budget_bytes(), 256).fits());
  EXPECT_TRUE(plan(p.total_bytes(), 256).fits());
  EXPECT_FALSE(plan(p.total_bytes() - 1, 256).fits());
}

TEST_F(MemoryPlanTest, context_0_is_the_models_where_that_is_least) {
  EXPECT_EQ(plan(1000 * kMiB, 0).context, test::kTinyContext);
}

TEST_F(MemoryPlanTest, context_0_is_the_most_steps_that_the_budget_allows) {
  const uint64_t least = plan(0, kContextStep).total_bytes(), most = plan(0, test::kTinyContext).total_bytes();
  ASSERT_LT(least, most);
  for (uint64_t budget = least; budget < most; budget += (most - least) / 7) {
    const MemoryPlan p = plan(budget, 0);
    EXPECT_TRUE(p.fits()) << budget;
    EXPECT_EQ(p.context % kContextStep, 0u);
    EXPECT_FALSE(plan(budget, p.context + kContextStep).fits()) << "a larger context would fit in " << budget;
  }
}

TEST_F(MemoryPlanTest, context_0_is_one_step_where_nothing_fits) {
  const MemoryPlan p = plan(1, 0);
  EXPECT_EQ(p.context, kContextStep);
  EXPECT_FALSE(p.fits());
  EXPECT_EQ(p.least_budget_bytes(), plan(1, kContextStep).least_budget_bytes());
}

TEST_F(MemoryPlanTest, refusal_has_all_the_numbers) {
  const std::string message = plan(5 * kMiB, 64).refusal("open x.gguf").message();
  for (const char* part : {"open x.gguf", "weights", "KV cache", "64 positions", "buffers", "5.00 MiB", "least"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  EXPECT_NE(message.find(std::to_string(plan(5 * kMiB, 64).least_budget_bytes())), std::string::npos) << message;
}

TEST_F(MemoryPlanTest, q8_0_cache_is_smaller) {
  test::TinyShape wide;
  wide.head_dim = 64;
  const gguf::Model wide_file = test::ModelFile(wide).open();
  const model::Config wide_config = *model::Config::from_gguf(wide_file);
  SessionShape f16{100000, kernels::KvType::kF16, 1}, q8_0{100000, kernels::KvType::kQ8_0, 1};
  EXPECT_LT(session_needs(wide_config, q8_0, 1).kv_bytes, session_needs(wide_config, f16, 1).kv_bytes);
}

TEST_F(MemoryPlanTest, more_logits_take_more_buffers) {
  SessionShape one{64, kernels::KvType::kF16, 1}, many{64, kernels::KvType::kF16, 32};
  model::Config large = config;
  large.n_vocab = 128000;
  EXPECT_GE(session_needs(large, many, 1).buffers_bytes,
            session_needs(large, one, 1).buffers_bytes + 31ull * 128000 * 4 - 2 * kMiB);  // mappings round up
}

}  // namespace
}  // namespace leanstream::runtime
