// What the cache's bookkeeping costs per demanded piece: a hit, or a miss with its eviction and insertion. The shape is
// Mistral-7B's, neuron by neuron: 32 layers of 14336, a fifth of each demanded per token. Arguments: the policy, and
// the percentage of pieces that have a slot.
#include <benchmark/benchmark.h>

#include <random>

#include "cache/cache.h"
#include "cache/policies.h"

namespace leanstream::cache {
namespace {

constexpr uint32_t kLayers = 32, kPerLayer = 14336, kPieces = kLayers * kPerLayer;
constexpr size_t kTokens = 24;

enum PolicyName { kStatic, kLru, kDecayedLfu, kArc, kBelady };

// A layer's neurons differ in how often they are demanded, from never to always, a fifth of them at a time.
const Steps& skewed_steps() {
  static const Steps steps = [] {
    Steps all;
    std::mt19937 random(1);
    std::vector<float> odds(kPieces);
    for (float& odd : odds) {
      const auto u = static_cast<float>(random()) / 4294967296.0f;
      odd = u * u * u * u;  // mean 0.2
    }
    for (size_t token = 0; token < kTokens; ++token)
      for (uint32_t layer = 0; layer < kLayers; ++layer) {
        for (uint32_t i = 0; i < kPerLayer; ++i) {
          const Piece piece = layer * kPerLayer + i;
          if (static_cast<float>(random()) < odds[piece] * 4294967296.0f) all.add(piece);
        }
        all.end_step();
      }
    return all;
  }();
  return steps;
}

std::unique_ptr<Policy> make(int64_t name, uint32_t n_slots) {
  const Steps& steps = skewed_steps();
  switch (name) {
    case kStatic:
      return static_policy(kPieces, most_demanded(steps, kPieces, n_slots));
    case kLru:
      return lru_policy(kPieces);
    case kDecayedLfu:
      return decayed_lfu_policy(kPieces, 32 * kLayers);
    case kArc:
      return arc_policy(kPieces, n_slots);
    default:
      return belady_policy(kPieces, n_slots, steps);
  }
}

void piece(benchmark::State& state) {
  const Steps& steps = skewed_steps();
  const auto n_slots = static_cast<uint32_t>(uint64_t{kPieces} * static_cast<uint64_t>(state.range(1)) / 100);
  std::vector<Slot> slots(kPerLayer);
  uint64_t demanded = 0, missed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Cache cache(kPieces, n_slots, make(state.range(0), n_slots));
    state.ResumeTiming();
    for (size_t i = 0; i < steps.count(); ++i) {
      const auto [step, missing] = cache.demand(steps.step(i), slots);
      if (state.range(0) == kBelady) cache.retire(step);  // as where it is a bound
      for (const Piece missed_piece : missing) benchmark::DoNotOptimize(cache.offer(missed_piece, step));
      missed += missing.size();
      cache.retire(step);
    }
    demanded += steps.all().size();
  }
  state.counters["per_piece"] =
      benchmark::Counter(static_cast<double>(demanded), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["missed"] = static_cast<double>(missed) / static_cast<double>(demanded);
}
BENCHMARK(piece)
    ->ArgNames({"policy", "percent"})
    ->ArgsProduct({{kStatic, kLru, kDecayedLfu, kArc, kBelady}, {25, 50}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace leanstream::cache
