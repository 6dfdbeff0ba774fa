#include "runtime/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/memory.h"

namespace leanstream::runtime {
namespace {

TEST(MemoryBudget, refuses_to_be_less_than_the_process_takes) {
  const auto budget = MemoryBudget::create(1000, 1001);
  EXPECT_EQ(budget.status().code(), Code::kOutOfBudget);
  EXPECT_NE(budget.status().message().find("1001"), std::string::npos) << budget.status().message();
}

TEST(MemoryBudget, takes_to_the_last_byte_and_no_further) {
  const auto budget = *MemoryBudget::create(1000, 100);
  const std::optional<MemoryHold> all = budget->take(900);
  ASSERT_TRUE(all);
  EXPECT_EQ(budget->held_bytes(), 1000u);
  EXPECT_FALSE(budget->take(1));
  EXPECT_TRUE(budget->take(0));
}

TEST(MemoryBudget, has_back_what_a_hold_leaves) {
  const auto budget = *MemoryBudget::create(1000, 100);
  {
    MemoryHold first = *budget->take(500);
    const MemoryHold moved = std::move(first);
    EXPECT_EQ(moved.bytes(), 500u);
    EXPECT_EQ(budget->held_bytes(), 600u);
  }
  EXPECT_EQ(budget->held_bytes(), 100u);
}

TEST(MemoryBudget, does_not_overflow) {
  const auto budget = *MemoryBudget::create(1000, 100);
  EXPECT_FALSE(budget->take(~uint64_t{0}));
}

TEST(MemoryBudget, holds_never_add_up_to_more_from_several_threads) {
  const auto budget = *MemoryBudget::create(1000, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::optional<MemoryHold> hold = budget->take(400);
        EXPECT_LE(budget->held_bytes(), 1000u);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget->held_bytes(), 0u);
}

TEST(MemoryBudget, fixed_cost_is_what_the_process_holds_and_a_margin) {
  const uint64_t rss = process_rss_bytes();
  EXPECT_GE(measure_fixed_bytes(2), rss / 2);  // giving heap back may lower it
  EXPECT_GT(measure_fixed_bytes(64), measure_fixed_bytes(1));
}

TEST(MemoryBudget, default_is_nine_tenths_of_what_is_there) {
  const double whole = static_cast<double>(process_rss_bytes() + available_memory_bytes());
  EXPECT_NEAR(static_cast<double>(default_budget_bytes()) / whole, 0.9, 0.05);  // memory moves meanwhile
}

}  // namespace
}  // namespace leanstream::runtime
