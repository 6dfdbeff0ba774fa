#include "cache/simulate.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "cache/policies.h"
#include "random_steps.h"

namespace leanstream::cache {
namespace {

std::vector<uint32_t> sizes_of(uint32_t n_pieces) {
  return std::vector<uint32_t>(n_pieces, 10);
}

// The least misses of all ways to run the steps: after each, any set of at most n_slots of what was there and what was
// demanded may stay.
uint64_t least_by_trying_everything(const Steps& steps, uint32_t n_pieces, uint32_t n_slots) {
  std::map<uint32_t, uint64_t> best = {{0u, 0}};  // by the set of resident pieces
  for (size_t i = 0; i < steps.count(); ++i) {
    uint32_t demanded = 0;
    for (const Piece piece : steps.step(i)) demanded |= 1u << piece;
    std::map<uint32_t, uint64_t> next;
    for (const auto& [resident, missed] : best) {
      const uint64_t cost = missed + static_cast<uint64_t>(std::popcount(demanded & ~resident));
      const uint32_t there = resident | demanded;
      for (uint32_t kept = 0; kept < 1u << n_pieces; ++kept) {
        if ((kept & ~there) != 0 || static_cast<uint32_t>(std::popcount(kept)) > n_slots) continue;
        const auto [entry, added] = next.try_emplace(kept, cost);
        if (!added) entry->second = std::min(entry->second, cost);
      }
    }
    best = std::move(next);
  }
  uint64_t least = UINT64_MAX;
  for (const auto& [resident, missed] : best) least = std::min(least, missed);
  return least;
}

TEST(Belady, misses_the_least_that_is_possible) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const uint32_t n_pieces = 3 + random() % 4;
    const uint32_t n_slots = random() % (n_pieces + 1);
    const Steps steps = random_steps({n_pieces, 12, 1 + static_cast<uint32_t>(random() % 4), 0.5}, random);
    EXPECT_EQ(least_misses(steps, sizes_of(n_pieces), n_slots).missed,
              least_by_trying_everything(steps, n_pieces, n_slots))
        << i;
  }
}

TEST(Belady, bounds_every_policy) {
  constexpr uint32_t kPieces = 80;
  std::mt19937 random(2);
  for (const double skew : {0.0, 0.6, 1.2}) {
    for (const uint32_t n_slots : {1u, 8u, 30u, 79u}) {
      const Steps steps = random_steps({kPieces, 1500, 12, skew}, random);
      const std::vector<uint32_t> sizes = sizes_of(kPieces);
      const uint64_t least = least_misses(steps, sizes, n_slots).missed;
      const auto missed = [&](std::unique_ptr<Policy> policy, Keep keep) {
        Cache cache(kPieces, n_slots, std::move(policy));
        return simulate(steps, sizes, cache, keep).missed;
      };
      for (const Keep keep : {Keep::kWithinStep, Keep::kAfterStep}) {
        EXPECT_GE(missed(lru_policy(kPieces), keep), least);
        EXPECT_GE(missed(decayed_lfu_policy(kPieces, 50), keep), least);
        EXPECT_GE(missed(arc_policy(kPieces, n_slots), keep), least);
        EXPECT_GE(missed(static_policy(kPieces, most_demanded(steps, kPieces, n_slots)), keep), least);
        EXPECT_GE(missed(belady_policy(kPieces, n_slots, steps), keep), least);
      }
    }
  }
}

TEST(Simulate, counts_pieces_and_bytes) {
  Steps steps;
  for (const auto& step : std::vector<std::vector<Piece>>{{0, 1}, {0, 2}, {1, 2}, {}}) {
    for (const Piece piece : step) steps.add(piece);
    steps.end_step();
  }
  const std::vector<uint32_t> sizes = {1, 10, 100};
  Cache cache(3, 2, lru_policy(3));
  const Misses misses = simulate(steps, sizes, cache, Keep::kWithinStep);
  EXPECT_EQ(misses.demanded, 6u);
  EXPECT_EQ(misses.demanded_bytes, 222u);
  EXPECT_EQ(misses.missed, 4u);  // 0 and 1; 2 for 1; 1 for 0
  EXPECT_EQ(misses.missed_bytes, 121u);
  EXPECT_DOUBLE_EQ(misses.ratio(), 4.0 / 6);
}

// Exact streaming's order. A cache of half the pieces can serve half of them, and least recently used serves none.
TEST(Simulate, a_cyclic_order_needs_a_fixed_part) {
  constexpr uint32_t kPieces = 400, kSlots = 200;
  constexpr size_t kRounds = 50;
  const Steps steps = cyclic_steps(kPieces, 20, kRounds);
  const std::vector<uint32_t> sizes = sizes_of(kPieces);
  const auto ratio = [&](std::unique_ptr<Policy> policy) {
    Cache cache(kPieces, kSlots, std::move(policy));
    return simulate(steps, sizes, cache, Keep::kWithinStep).ratio();
  };
  const double least = (kPieces + (kRounds - 1.0) * (kPieces - kSlots)) / (kRounds * kPieces);
  EXPECT_DOUBLE_EQ(least_misses(steps, sizes, kSlots).ratio(), least);
  EXPECT_DOUBLE_EQ(ratio(static_policy(kPieces, most_demanded(steps, kPieces, kSlots))), least);
  EXPECT_DOUBLE_EQ(ratio(lru_policy(kPieces)), 1);
  EXPECT_LT(ratio(decayed_lfu_policy(kPieces, 64 * kPieces / 20)), 1.05 * least);
}

}  // namespace
}  // namespace leanstream::cache
