// Attention of one thread. Decode: one position over a context, all KV heads of a layer in turn, so that keys and
// values come from memory and not from a cache. Prefill: the last chunk of 512 positions, several positions a task.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "kernels/abi/half.h"
#include "kernels/cpu/kernels.h"

namespace leanstream::kernels {
namespace {

constexpr uint32_t kHeadDim = 128;

// `layers` caches of [context, kv_heads, kHeadDim], keys and values, of one arbitrary number.
struct Cache {
  Cache(KvType type, uint32_t context, uint32_t kv_heads)
      : row_bytes(kv_head_bytes(type, kHeadDim) * kv_heads), k(context * row_bytes), v(k.size()) {
    const std::vector<float> x(kHeadDim, 0.01f);
    for (size_t at = 0; at < k.size(); at += kv_head_bytes(type, kHeadDim)) {
      select_kernels()->store_kv(type, x.data(), kHeadDim, k.data() + at);
      select_kernels()->store_kv(type, x.data(), kHeadDim, v.data() + at);
    }
  }
  size_t row_bytes;
  std::vector<std::byte> k, v;
};

// Arguments: type, context, queries per KV head.
void decode(benchmark::State& state) {
  const KvType type = static_cast<KvType>(state.range(0));
  const uint32_t context = static_cast<uint32_t>(state.range(1)), queries = static_cast<uint32_t>(state.range(2));
  constexpr uint32_t kKvHeads = 8;
  // Together beyond the last-level cache of a desktop, as the layers of a model are.
  const uint32_t layers = 65536 / context;
  const Cache cache(type, context * layers, kKvHeads);
  const std::vector<float> q(queries * kHeadDim, 0.1f);
  std::vector<float> out(q.size());

  AttentionTask task;
  task.kv_type = type;
  task.head_dim = kHeadDim;
  task.n_queries = queries;
  task.q = q.data();
  task.kv_stride_bytes = cache.row_bytes;
  task.end = context;
  task.scale = 0.088f;
  task.out = out.data();
  for (auto _ : state)
    for (uint32_t layer = 0; layer < layers; ++layer)
      for (uint32_t head = 0; head < kKvHeads; ++head) {
        const size_t offset = layer * context * cache.row_bytes + head * kv_head_bytes(type, kHeadDim);
        task.k = cache.k.data() + offset;
        task.v = cache.v.data() + offset;
        select_kernels()->attention(task);
      }
  state.SetBytesProcessed(static_cast<int64_t>(2 * cache.k.size() * state.iterations()));
}
BENCHMARK(decode)
    ->ArgNames({"type", "context", "queries"})
    ->ArgsProduct({{0, 1}, {512, 4096}, {1, 4, 8}})
    ->Unit(benchmark::kMillisecond);

// Arguments: queries per KV head, positions per task. 32 heads, 512 positions, from an empty cache.
void prefill(benchmark::State& state) {
  constexpr uint32_t kPositions = 512, kHeads = 32;
  const uint32_t queries = static_cast<uint32_t>(state.range(0)), positions = static_cast<uint32_t>(state.range(1));
  const uint32_t kv_heads = kHeads / queries;
  const Cache cache(KvType::kF16, kPositions, kv_heads);
  const std::vector<float> q(size_t{kPositions} * kHeads * kHeadDim, 0.1f);
  std::vector<float> out(q.size());

  AttentionTask task;
  task.head_dim = kHeadDim;
  task.n_queries = queries;
  task.kv_stride_bytes = cache.row_bytes;
  task.scale = 0.088f;
  task.n_positions = positions;
  task.position_stride = size_t{kHeads} * kHeadDim;
  for (auto _ : state)
    for (uint32_t position = 0; position < kPositions; position += positions)
      for (uint32_t head = 0; head < kv_heads; ++head) {
        const size_t offset = position * task.position_stride + size_t{head} * queries * kHeadDim;
        task.q = q.data() + offset;
        task.out = out.data() + offset;
        task.k = cache.k.data() + head * kv_head_bytes(KvType::kF16, kHeadDim);
        task.v = cache.v.data() + head * kv_head_bytes(KvType::kF16, kHeadDim);
        task.end = position + 1;
        select_kernels()->attention(task);
      }
  // Multiply-adds of keys and of values, of the rows that are seen.
  state.counters["gfma"] = benchmark::Counter(
      kHeads * kHeadDim * kPositions * (kPositions + 1.0) * 1e-9 * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(prefill)
    ->ArgNames({"queries", "positions"})
    ->ArgsProduct({{1, 4}, {1, 4, 8, 16}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace leanstream::kernels
