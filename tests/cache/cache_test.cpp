#include "cache/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "cache/policies.h"
#include "random_steps.h"
#include "tests/engine/allocation_count.h"

namespace leanstream::cache {
namespace {

constexpr uint32_t kPieces = 64;

struct Made {
  const char* name;
  std::function<std::unique_ptr<Policy>(uint32_t n_slots, const Steps& steps)> make;
};

const std::vector<Made>& every_policy() {
  static const std::vector<Made> all = {
      {"static", [](uint32_t n_slots,
                    const Steps& steps) { return static_policy(kPieces, most_demanded(steps, kPieces, n_slots / 2)); }},
      {"lru", [](uint32_t, const Steps&) { return lru_policy(kPieces); }},
      {"decayed lfu", [](uint32_t, const Steps&) { return decayed_lfu_policy(kPieces, 16); }},
      {"arc", [](uint32_t n_slots, const Steps&) { return arc_policy(kPieces, n_slots); }},
      {"belady", [](uint32_t n_slots, const Steps& steps) { return belady_policy(kPieces, n_slots, steps); }},
  };
  return all;
}

TEST(Cache, finds_what_was_inserted) {
  Cache cache(kPieces, 2, lru_policy(kPieces));
  std::array<Slot, 2> slots = {};
  const std::array<Piece, 2> pieces = {5, 9};
  const auto [step, missing] = cache.demand(pieces, slots);
  EXPECT_EQ(slots, (std::array<Slot, 2>{kNone, kNone}));
  EXPECT_EQ(std::vector<Piece>(missing.begin(), missing.end()), (std::vector<Piece>{5, 9}));
  EXPECT_EQ(cache.insert(9, step).slot, 0u);
  EXPECT_EQ(cache.insert(5, step).slot, 1u);
  cache.retire(step);
  EXPECT_TRUE(cache.demand(pieces, slots).missing.empty());
  EXPECT_EQ(slots, (std::array<Slot, 2>{1, 0}));
  EXPECT_EQ(cache.residency().piece_in(0), 9u);
}

TEST(Cache, gives_up_nothing_that_a_live_step_needs) {
  for (const Made& policy : every_policy()) {
    if (std::string(policy.name) == "static") continue;  // keeps its set, whoever holds it
    Steps none;
    Cache cache(kPieces, 2, policy.make(2, none));
    std::array<Slot, 3> slots = {};
    const Step first = cache.demand({}, slots).step;
    EXPECT_NE(cache.insert(1, first).slot, kNone) << policy.name;
    const Step second = first + 1;  // read ahead
    EXPECT_NE(cache.insert(2, second).slot, kNone) << policy.name;
    EXPECT_EQ(cache.insert(3, first).slot, kNone) << policy.name;
    cache.retire(first);
    const Cache::Insertion third = cache.insert(3, second);
    EXPECT_EQ(third.evicted, 1u) << policy.name;
    EXPECT_EQ(cache.insert(4, second).slot, kNone) << policy.name;
    cache.retire(second);
    EXPECT_NE(cache.insert(4, second + 1).slot, kNone) << policy.name;
  }
}

TEST(Cache, keeps_pinned_pieces_until_they_are_unpinned) {
  for (const Made& policy : every_policy()) {
    std::mt19937 random(3);
    const Steps steps = random_steps({kPieces, 400, 6, 0.5}, random);
    Cache cache(kPieces, 16, policy.make(16, steps));
    std::array<Slot, kPieces> slots = {};
    const Step before = cache.last_step();
    for (Piece piece = 0; piece < 4; ++piece) {
      ASSERT_NE(cache.insert(piece, before).slot, kNone);
      cache.pin(piece);
      cache.pin(piece);
    }
    for (size_t i = 0; i < 200; ++i) {
      const auto [step, missing] = cache.demand(steps.step(i), slots);
      for (const Piece piece : missing) static_cast<void>(cache.insert(piece, step));
      cache.retire(step);
      for (Piece piece = 0; piece < 4; ++piece) ASSERT_TRUE(cache.residency().resident(piece)) << policy.name;
    }
    cache.evict(0);
    EXPECT_FALSE(cache.residency().resident(0)) << policy.name;
    for (Piece piece = 1; piece < 4; ++piece) cache.unpin(piece);
    for (size_t i = 200; i < steps.count(); ++i) {
      const auto [step, missing] = cache.demand(steps.step(i), slots);
      for (const Piece piece : missing) static_cast<void>(cache.insert(piece, step));
      cache.retire(step);
    }
  }
}

// Whatever is asked of it, in any order: slots and pieces agree, held pieces stay, and no policy loses count.
TEST(Cache, stays_consistent_under_random_use) {
  for (const Made& policy : every_policy()) {
    std::mt19937 random(7);
    const Steps steps = random_steps({kPieces, 3000, 8, 0.7}, random);
    constexpr uint32_t kSlots = 12;
    Cache cache(kPieces, kSlots, policy.make(kSlots, steps));
    std::array<Slot, kPieces> slots = {};
    std::set<Piece> pinned;
    Step live_from = 1;
    for (size_t i = 0; i < steps.count(); ++i) {
      const auto pieces = steps.step(i);
      const Step step = cache.demand(pieces, slots).step;
      std::set<Piece> needed;
      for (size_t k = 0; k < pieces.size(); ++k) {
        ASSERT_EQ(slots[k], cache.residency().slot_of(pieces[k]));
        if (slots[k] == kNone) {
          const auto placed = random() % 2 ? cache.insert(pieces[k], step) : cache.offer(pieces[k], step);
          if (placed.slot == kNone) continue;
          ASSERT_EQ(cache.residency().piece_in(placed.slot), pieces[k]) << policy.name;
        }
        needed.insert(pieces[k]);
      }
      for (const Piece piece : needed) ASSERT_TRUE(cache.residency().resident(piece)) << policy.name;
      for (const Piece piece : pinned) ASSERT_TRUE(cache.residency().resident(piece)) << policy.name;
      const Piece any = random() % kPieces;
      if (cache.residency().resident(any)) {
        switch (random() % 6) {
          case 0:
            cache.evict(any);
            pinned.erase(any);
            break;
          case 1:
            if (pinned.size() < 4) {
              cache.pin(any);
              pinned.insert(any);
            }
            break;
          case 2:
            cache.unpin(any);
            pinned.erase(any);
            break;
          default:
            break;
        }
      }
      if (random() % 3 != 0) cache.retire(live_from = step);
    }
    uint32_t resident = 0;
    for (Piece piece = 0; piece < kPieces; ++piece) {
      const Slot slot = cache.residency().slot_of(piece);
      if (slot == kNone) continue;
      ++resident;
      EXPECT_EQ(cache.residency().piece_in(slot), piece);
    }
    EXPECT_LE(resident, kSlots);
  }
}

TEST(Cache, allocates_nothing_after_construction) {
  for (const Made& policy : every_policy()) {
    std::mt19937 random(5);
    const Steps steps = random_steps({kPieces, 500, 8, 0.7}, random);
    Cache cache(kPieces, 12, policy.make(12, steps));
    std::array<Slot, kPieces> slots = {};
    const uint64_t before = testing::allocation_count();
    for (size_t i = 0; i < steps.count(); ++i) {
      const auto [step, missing] = cache.demand(steps.step(i), slots);
      for (const Piece piece : missing) static_cast<void>(cache.insert(piece, step));
      cache.retire(step);
    }
    EXPECT_EQ(testing::allocation_count(), before) << policy.name;
  }
}

TEST(Cache, of_no_slots_keeps_nothing) {
  for (const Made& policy : every_policy()) {
    Steps none;
    Cache cache(kPieces, 0, policy.make(0, none));
    EXPECT_EQ(cache.insert(1, 1).slot, kNone) << policy.name;
    EXPECT_EQ(cache.offer(1, 1).slot, kNone) << policy.name;
  }
}

}  // namespace
}  // namespace leanstream::cache
