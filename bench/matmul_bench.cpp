// Speed of the matrix kernels by target, weight type, layout and number of vectors. Names read
// "<what>/<target>/<type>/<layout>/<vectors>"; --benchmark_filter picks some of the many.
//
//   read       what a plain loop reads, the bound of matmul with one vector
//   matmul     bytes/s of weights, and MAC/s
//   pack       bytes/s of file rows that become panels

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kernels/abi/matrix.h"
#include "kernels/cpu/kernels.h"

namespace leanstream::bench {
namespace {

using kernels::Activations;
using kernels::Kernels;

constexpr uint32_t kCols = 4096;
constexpr size_t kBigBytes = size_t{512} << 20;  // far larger than any cache that this has run on shares out

struct Vectors {
  std::vector<float> f32;
  std::vector<int8_t> q8;
  std::vector<float> scale;
  std::vector<int32_t> sum16;

  Vectors(const Kernels& k, uint32_t count, uint32_t cols)
      : f32(size_t{count} * cols), q8(f32.size()), scale(f32.size() / 32), sum16(f32.size() / 16) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& x : f32) x = normal(random);
    k.quantize(f32.data(), static_cast<uint32_t>(f32.size()), q8.data(), scale.data(), sum16.data());
  }
  Activations view(uint32_t count, uint32_t cols) const {
    return {count, cols, f32.data(), q8.data(), scale.data(), sum16.data()};
  }
};

// Memory that all benchmarks share: harmless bits, the same in every 2-byte field, so that no scale is odd.
std::byte* weights() {
  static const MappedMemory memory = [] {
    Result<MappedMemory> result = MappedMemory::allocate(kBigBytes + (size_t{1} << 20));
    if (!result.ok()) std::abort();
    std::memset(result->data(), 0x25, result->size_bytes());
    return std::move(*result);
  }();
  return memory.data();
}

void read(benchmark::State& state) {
  const size_t share = kBigBytes / state.threads();
  const auto* mine = reinterpret_cast<const uint64_t*>(weights() + state.thread_index() * share);
  const Kernels& kernels = *kernels::select_kernels();
  for (auto _ : state) benchmark::DoNotOptimize(kernels.sum_words(mine, share / sizeof *mine));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(share));
}

struct Case {
  const Kernels* kernels;
  WeightType type;
  Layout layout;
  uint32_t count;
};

// Each thread takes its share of the rows, in steps as an engine would hand them out.
void matmul(benchmark::State& state, const Case& c) {
  const size_t bytes = c.count >= 64 ? size_t{64} << 20 : kBigBytes;
  const auto rows = static_cast<uint32_t>(bytes / row_bytes(c.type, kCols) / 512 * 512);
  const Matrix w{c.type, c.layout, rows, kCols, weights()};
  const Vectors vectors(*c.kernels, c.count, kCols);
  std::vector<float> out(size_t{c.count} * rows);
  const uint32_t share = rows / state.threads() / kPanelRows * kPanelRows;
  const uint32_t begin = share * state.thread_index();
  const uint32_t step = 256;
  for (auto _ : state) {
    for (uint32_t row = begin; row < begin + share; row += step) {
      const uint32_t end = std::min(row + step, begin + share);
      c.kernels->matmul(w, vectors.view(c.count, kCols), row, end, out.data(), rows);
    }
    benchmark::ClobberMemory();
  }
  const auto macs = static_cast<double>(state.iterations()) * share * kCols * c.count;
  state.counters["MAC"] = benchmark::Counter(macs, benchmark::Counter::kIsRate);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(share * row_bytes(c.type, kCols)));
}

void pack(benchmark::State& state, const Kernels* kernels, WeightType type) {
  const size_t panel = panel_bytes(type, kCols);
  const size_t panels = kBigBytes / panel / state.threads();
  const std::byte* from = weights() + panels * panel * state.thread_index();
  std::vector<std::byte> to(panel);
  for (auto _ : state) {
    for (size_t p = 0; p < panels; ++p) {
      kernels->pack_panel(type, kCols, kPanelRows, from + p * panel, row_bytes(type, kCols), to.data());
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(panels * panel));
}

void register_all() {
  benchmark::RegisterBenchmark("read", read)->Threads(1)->Threads(2)->UseRealTime();
  for (const Kernels* k : kernels::all_kernels()) {
    for (const WeightTypeTraits& type : kWeightTypes) {
      const std::string target = std::string("/") + k->name + "/" + type.name;
      benchmark::RegisterBenchmark(("pack" + target).c_str(), pack, k, type.type)
          ->Threads(1)
          ->Threads(2)
          ->UseRealTime();
      for (const Layout layout : {Layout::kPanel, Layout::kFile}) {
        for (const uint32_t count : {1, 2, 4, 8, 16, 32, 64, 512}) {
          const char* layout_name = layout == Layout::kPanel ? "/panel/" : "/file/";
          const std::string name = "matmul" + target + layout_name + std::to_string(count);
          benchmark::RegisterBenchmark(name.c_str(), matmul, Case{k, type.type, layout, count})
              ->Threads(1)
              ->Threads(2)
              ->UseRealTime();
        }
      }
    }
  }
}

}  // namespace
}  // namespace leanstream::bench

int main(int argc, char** argv) {
  leanstream::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
