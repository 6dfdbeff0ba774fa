// What the worker team costs: an empty run, a barrier, a chunk. The argument is the number of threads.
#include <benchmark/benchmark.h>

#include "engine/worker_team.h"

namespace leanstream::engine {
namespace {

void empty_run(benchmark::State& state) {
  const auto team = WorkerTeam::create(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) (*team)->run([](Worker&) {});
}
BENCHMARK(empty_run)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

// Time per barrier, of runs of 1000.
void barrier(benchmark::State& state) {
  constexpr int kBarriers = 1000;
  const auto team = WorkerTeam::create(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state)
    (*team)->run([](Worker& worker) {
      for (int i = 0; i < kBarriers; ++i) worker.barrier();
    });
  state.counters["per_barrier"] = benchmark::Counter(kBarriers * static_cast<double>(state.iterations()),
                                                     benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(barrier)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

// Time per chunk of no work: all workers contend for the counter.
void chunk(benchmark::State& state) {
  constexpr uint32_t kChunks = 10000;
  const auto team = WorkerTeam::create(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state)
    (*team)->run([](Worker& worker) { worker.for_each_chunk(kChunks, 1, [](uint32_t, uint32_t) {}); });
  state.counters["per_chunk"] = benchmark::Counter(kChunks * static_cast<double>(state.iterations()),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(chunk)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

}  // namespace
}  // namespace leanstream::engine
