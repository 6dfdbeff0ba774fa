// Every policy against a slow model of itself: the same hits, step by step.
#include "cache/policies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>

#include "cache/cache.h"
#include "cache/decayed_count.h"
#include "random_steps.h"

namespace leanstream::cache {
namespace {

// What a slow model does with one step: the missed pieces.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::vector<Piece> step(std::span<const Piece> pieces) = 0;
};

template <typename Pieces>
bool contains(const Pieces& pieces, Piece piece) {
  return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
}

void expect_same(const Steps& steps, uint32_t n_pieces, uint32_t n_slots, std::unique_ptr<Policy> policy,
                 Model& model) {
  Cache cache(n_pieces, n_slots, std::move(policy));
  std::vector<Slot> slots(n_pieces);
  for (size_t i = 0; i < steps.count(); ++i) {
    const auto pieces = steps.step(i);
    const auto [step, missing] = cache.demand(pieces, slots);
    for (const Piece piece : missing) static_cast<void>(cache.offer(piece, step));
    cache.retire(step);
    ASSERT_EQ(std::vector<Piece>(missing.begin(), missing.end()), model.step(pieces))
        << "step " << i << ", " << n_slots << " slots";
  }
}

class NaiveLru : public Model {
 public:
  explicit NaiveLru(uint32_t n_slots) : n_slots_(n_slots) {}

  std::vector<Piece> step(std::span<const Piece> pieces) override {
    std::vector<Piece> missed;
    for (const Piece piece : pieces) {
      if (!contains(order_, piece)) {
        missed.push_back(piece);
        continue;
      }
      std::erase(order_, piece);
      order_.push_back(piece);
    }
    for (const Piece piece : missed) {
      if (order_.size() == n_slots_) {
        const auto victim =
            std::find_if(order_.begin(), order_.end(), [&](Piece old) { return !contains(pieces, old); });
        if (victim == order_.end()) continue;
        order_.erase(victim);
      }
      order_.push_back(piece);
    }
    return missed;
  }

 private:
  const size_t n_slots_;
  std::deque<Piece> order_;
};

TEST(Lru, agrees_with_a_list_that_is_searched) {
  std::mt19937 random(1);
  for (const uint32_t n_slots : {1u, 5u, 20u, 59u})
    for (const double skew : {0.0, 0.8}) {
      const Steps steps = random_steps({60, 2000, 8, skew}, random);
      NaiveLru model(n_slots);
      expect_same(steps, 60, n_slots, lru_policy(60), model);
    }
}

class NaiveStatic : public Model {
 public:
  explicit NaiveStatic(std::vector<Piece> set) : set_(std::move(set)) {}
  std::vector<Piece> step(std::span<const Piece> pieces) override {
    std::vector<Piece> missed;
    for (const Piece piece : pieces) {
      if (!contains(seen_, piece)) missed.push_back(piece);
      if (contains(set_, piece)) seen_.push_back(piece);
    }
    return missed;
  }

 private:
  const std::vector<Piece> set_;
  std::vector<Piece> seen_;
};

TEST(Static, keeps_its_set_and_nothing_else) {
  std::mt19937 random(1);
  const Steps steps = random_steps({60, 500, 8, 0.8}, random);
  const std::vector<Piece> set = most_demanded(steps, 60, 20);
  NaiveStatic model(set);
  expect_same(steps, 60, 20, static_policy(60, set), model);
}

TEST(Static, lets_others_through_the_slots_that_its_set_leaves) {
  const std::array<Piece, 2> set = {0, 1};
  Cache cache(8, 3, static_policy(8, set));
  for (const Piece piece : {0u, 1u, 5u}) EXPECT_NE(cache.insert(piece, 0).slot, kNone);
  EXPECT_EQ(cache.insert(6, 0).evicted, 5u);
  EXPECT_EQ(cache.insert(7, 0).evicted, 6u);
  EXPECT_TRUE(cache.residency().resident(0) && cache.residency().resident(1));
  EXPECT_EQ(cache.offer(5, 0).slot, kNone);
}

TEST(Static, is_chosen_by_frequency_and_then_by_number) {
  Steps steps;
  for (const auto& step : std::vector<std::vector<Piece>>{{1, 2, 4}, {2, 4}, {0, 4}}) {
    for (const Piece piece : step) steps.add(piece);
    steps.end_step();
  }
  EXPECT_EQ(most_demanded(steps, 6, 4), (std::vector<Piece>{4, 2, 0, 1}));
  EXPECT_EQ(most_demanded(steps, 6, 9).size(), 6u);
}

// Counts by the same fixed-point arithmetic; buckets without a ring, searched.
class NaiveDecayedLfu : public Model {
 public:
  NaiveDecayedLfu(uint32_t n_pieces, uint32_t n_slots, uint32_t half_life)
      : n_slots_(n_slots), count_(half_life), counts_(n_pieces, DecayedCount::kNever) {}

  std::vector<Piece> step(std::span<const Piece> pieces) override {
    const auto now = count_.time_of(++step_);
    std::vector<Piece> missed;
    for (const Piece piece : pieces) {
      counts_[piece] = count_.plus_one(counts_[piece], now);
      if (!contains(order_, piece)) {
        missed.push_back(piece);
        continue;
      }
      std::erase(order_, piece);
      order_.push_back(piece);
    }
    for (const Piece piece : missed) {
      if (order_.size() == n_slots_) {
        auto victim = order_.end();
        for (auto candidate = order_.begin(); candidate != order_.end(); ++candidate)
          if (!contains(pieces, *candidate) && (victim == order_.end() || bucket(*candidate) < bucket(*victim)))
            victim = candidate;
        if (victim == order_.end() || bucket(piece) <= bucket(*victim) + 1) continue;
        order_.erase(victim);
      }
      order_.push_back(piece);
    }
    return missed;
  }

 private:
  uint64_t bucket(Piece piece) const { return counts_[piece] * 8 / DecayedCount::kOne; }

  const size_t n_slots_;
  const DecayedCount count_;
  std::vector<DecayedCount::Log> counts_;
  std::vector<Piece> order_;  // by last demand
  uint64_t step_ = 0;
};

TEST(DecayedLfu, agrees_with_counts_that_are_searched) {
  std::mt19937 random(1);
  for (const uint32_t n_slots : {1u, 5u, 20u, 59u})
    for (const double skew : {0.0, 0.8}) {
      // 16 half-lives at most, so that none falls out of the window.
      const Steps steps = random_steps({60, 2000, 8, skew}, random);
      NaiveDecayedLfu model(60, n_slots, 125);
      expect_same(steps, 60, n_slots, decayed_lfu_policy(60, 125), model);
    }
}

TEST(DecayedLfu, counts_as_real_arithmetic_does) {
  const DecayedCount count(10);
  std::mt19937 random(1);
  DecayedCount::Log log = DecayedCount::kNever;
  double exact = 0;
  uint64_t step = 0;
  for (int i = 0; i < 300; ++i) {
    const uint64_t gap = 1 + random() % 8;
    step += gap;
    exact = exact * std::exp2(-static_cast<double>(gap) / 10) + 1;
    log = count.plus_one(log, count.time_of(step));
    const double found = (static_cast<double>(log) - static_cast<double>(count.time_of(step))) / DecayedCount::kOne;
    // Each demand rounds by half a unit of 1/256 at most, and old roundings decay as their demands do; time rounds too.
    EXPECT_NEAR(found, std::log2(exact), 0.03) << step;
  }
}

// With a short half-life and long gaps all that is old falls into the lowest bucket: the victim is still among the
// pieces of the least counts, as far as 2^-15 of a demand counts.
TEST(DecayedLfu, gives_up_what_has_decayed) {
  constexpr uint32_t kPieces = 40, kSlots = 10;
  std::mt19937 random(2);
  for (const uint32_t half_life : {1u, 3u}) {
    std::vector<double> counts(kPieces, 0);
    Cache cache(kPieces, kSlots, decayed_lfu_policy(kPieces, half_life));
    const Steps steps = random_steps({kPieces, 4000, 3, 1.0}, random);
    std::vector<Slot> slots(kPieces);
    for (size_t i = 0; i < steps.count(); ++i) {
      for (double& count : counts) count *= std::exp2(-1.0 / half_life);
      for (const Piece piece : steps.step(i)) ++counts[piece];
      const auto [step, missing] = cache.demand(steps.step(i), slots);
      for (const Piece piece : missing) {
        double least = INFINITY;
        for (Piece other = 0; other < kPieces; ++other)
          if (cache.residency().resident(other) && !cache.residency().held(other))
            least = std::min(least, counts[other]);
        const auto placed = cache.insert(piece, step);
        if (placed.evicted == kNone) continue;
        ASSERT_LE(counts[placed.evicted], std::max(std::exp2(-15.0), least * std::exp2(0.2))) << i;
      }
      cache.retire(step);
    }
  }
}

// The algorithm as the paper prints it, one request at a time (Figure 4, ARC(c)).
class NaiveArc : public Model {
 public:
  explicit NaiveArc(uint32_t c) : c_(c) {}

  std::vector<Piece> step(std::span<const Piece> pieces) override {
    EXPECT_EQ(pieces.size(), 1u);
    const Piece x = pieces[0];
    if (contains(t1_, x) || contains(t2_, x)) {  // case I
      std::erase(t1_, x);
      std::erase(t2_, x);
      t2_.push_back(x);
      return {};
    }
    if (contains(b1_, x)) {  // case II
      p_ = std::min(c_, p_ + (b1_.size() >= b2_.size() ? 1 : b2_.size() / b1_.size()));
      replace(x);
      std::erase(b1_, x);
      t2_.push_back(x);
    } else if (contains(b2_, x)) {  // case III
      p_ -= std::min(p_, b2_.size() >= b1_.size() ? 1 : b1_.size() / b2_.size());
      replace(x);
      std::erase(b2_, x);
      t2_.push_back(x);
    } else {  // case IV
      if (t1_.size() + b1_.size() == c_) {
        if (t1_.size() < c_) {
          b1_.pop_front();
          replace(x);
        } else {
          t1_.pop_front();
        }
      } else if (t1_.size() + t2_.size() + b1_.size() + b2_.size() >= c_) {
        if (t1_.size() + t2_.size() + b1_.size() + b2_.size() == 2 * c_) b2_.pop_front();
        replace(x);
      }
      t1_.push_back(x);
    }
    return {x};
  }

 private:
  void replace(Piece x) {
    if (!t1_.empty() && (t1_.size() > p_ || (contains(b2_, x) && t1_.size() == p_))) {
      b1_.push_back(t1_.front());
      t1_.pop_front();
    } else {
      b2_.push_back(t2_.front());
      t2_.pop_front();
    }
  }

  const size_t c_;
  size_t p_ = 0;
  std::deque<Piece> t1_, t2_, b1_, b2_;  // oldest in front
};

TEST(Arc, agrees_with_the_algorithm_as_published) {
  std::mt19937 random(1);
  for (const uint32_t n_slots : {1u, 2u, 7u, 30u})
    for (const double skew : {0.2, 0.8, 1.2}) {
      const Steps steps = random_steps({100, 6000, 1, skew}, random);
      NaiveArc model(n_slots);
      expect_same(steps, 100, n_slots, arc_policy(100, n_slots), model);
    }
}

TEST(Arc, keeps_what_comes_often_through_a_scan) {
  Cache cache(1000, 10, arc_policy(1000, 10));
  std::vector<Slot> slots(1000);
  const auto demand = [&](Piece piece) {
    const auto [step, missing] = cache.demand({&piece, 1}, slots);
    if (!missing.empty()) static_cast<void>(cache.insert(piece, step));
    cache.retire(step);
  };
  for (int i = 0; i < 4; ++i)
    for (Piece piece = 0; piece < 5; ++piece) demand(piece);
  for (Piece piece = 100; piece < 900; ++piece) demand(piece);
  for (Piece piece = 0; piece < 5; ++piece) EXPECT_TRUE(cache.residency().resident(piece)) << piece;
}

}  // namespace
}  // namespace leanstream::cache
