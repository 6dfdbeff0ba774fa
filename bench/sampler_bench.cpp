// One draw from the logits of a large vocabulary (Gemma's: 2^18), by what the parameters leave to do. Logits are normal
// numbers, of the spread that language models have.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "model/sampler.h"

namespace leanstream::model {
namespace {

constexpr uint32_t kVocabulary = 1 << 18;

void sample(benchmark::State& state, const SamplingParams& params) {
  std::mt19937 random(7);
  std::normal_distribution<float> logit(0.0f, 3.0f);
  std::vector<float> logits(kVocabulary);
  for (float& x : logits) x = logit(random);
  Result<Sampler> sampler = Sampler::create(params, kVocabulary);
  int64_t sum = 0;
  for (auto _ : state) sum += *sampler->sample(logits, {});
  benchmark::DoNotOptimize(sum);
  state.SetLabel("ids sum up to " + std::to_string(sum / static_cast<int64_t>(state.iterations())) + " on average");
}

BENCHMARK_CAPTURE(sample, defaults, SamplingParams{})->Unit(benchmark::kMicrosecond)->Iterations(200);
BENCHMARK_CAPTURE(sample, no_top_k, SamplingParams{.top_k = 0})->Unit(benchmark::kMicrosecond)->Iterations(200);
BENCHMARK_CAPTURE(sample, top_p_only, SamplingParams{.top_k = 0, .min_p = 0})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(200);
BENCHMARK_CAPTURE(sample, min_p_only, SamplingParams{.top_k = 0, .top_p = 1})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(200);
BENCHMARK_CAPTURE(sample, everything, SamplingParams{.top_k = 0, .top_p = 1, .min_p = 0})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(200);
BENCHMARK_CAPTURE(sample, greedy, SamplingParams{.temperature = 0})->Unit(benchmark::kMicrosecond)->Iterations(200);

}  // namespace
}  // namespace leanstream::model
