// The AVX-512 kernels, with the products of 16 and more vectors on the matrix unit (AMX). Its integer sums are exact,
// so all results stay those of the other targets, bit for bit.

#include <immintrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/matrix_kernels.h"
#include "kernels/cpu/output.h"
#include "kernels/cpu/quantized_portion.h"
#include "kernels/cpu/simd_avx512.h"

namespace leanstream::kernels {
namespace {

// The shapes of the tiles. Weights are 16 rows wide: row t of a weight tile is vector t of a panel's slice, as it
// stands. Vectors come 16 at a time, or fewer at the end of a batch. Compilers want the numbers of tiles as literals: 0
// to 3 are sums, 4 and 5 vectors, 6 and 7 weights.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  // k: elements of an inner product, 16 or 32.
  TileConfig(uint32_t n_vectors, int k) {
    for (const int sums : {0, 1, 2, 3}) set(sums, n_vectors, 64);
    for (const int vectors : {4, 5}) set(vectors, n_vectors, k);
    for (const int weights : {6, 7}) set(weights, static_cast<uint32_t>(k) / 4, 64);
  }
  void set(int tile, uint32_t n_rows, int bytes) {
    rows[tile] = static_cast<uint8_t>(n_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
  // GCC declares _tile_loadconfig to read less than the whole of it; the empty statement says that all 64 bytes are read.
  void load() const {
    asm volatile("" : : "r"(this) : "memory");
    _tile_loadconfig(this);
  }
};

template <WeightType kType>
struct AmxMatmul {
  using S = Avx512;
  using Portion = QuantizedPortion<S, kType>;
  using C = typename Portion::C;
  static constexpr int kGroupsPerSlice = Portion::kGroupsPerSlice;
  static constexpr int kGroupElements = 32 / kGroupsPerSlice;
  static constexpr size_t kVectorsPerGroup = kGroupElements / 4;  // SIMD vectors of a panel
  static constexpr uint32_t kBatch = 128;                         // vectors that share one unpacking
  using Unpacked = typename Portion::Unpacked;
  using Sums = int32_t[kSetVectors][kPanelRows];

  // Codes as the signed numbers they stand for.
  static __m512i prepare(__m512i codes) { return _mm512_sub_epi8(codes, _mm512_set1_epi8(C::kOffset)); }

  // Sixteen vectors' parts in one sum group, each tile of them in one piece: rows that are a power of two apart would
  // drive each other out of the first-level cache.
  struct VectorSet : Portion::VectorScales {
    alignas(64) int8_t q8[Portion::kGroupsOfSum][kSetVectors][kGroupElements];

    void fill(const Activations& x, uint32_t first, uint32_t n, uint32_t begin, uint32_t n_slices) {
      Portion::VectorScales::fill(x, first, n, begin, n_slices);
      for (uint32_t m = 0; m < n; ++m) {
        const int8_t* from = x.q8 + size_t{first + m} * x.cols + begin;
        for (uint32_t group = 0; group < n_slices * kGroupsPerSlice; ++group, from += kGroupElements) {
          __builtin_memcpy(q8[group][m], from, kGroupElements);
        }
      }
    }
  };

  // sums[i][m][r] = the exact dot product of row r and vector m over group `group` + i. Four tiles of sums are in
  // flight, and stored together: a store's 16 rows then wait for no product.
  static void dot_four(const Unpacked& w, const VectorSet& x, uint32_t group, Sums* sums) {
    const auto* numbers = w.codes[group * kVectorsPerGroup];
    const int8_t* q8 = x.q8[group][0];
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, q8, kGroupElements);
    _tile_loadd(6, numbers, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(5, q8 + sizeof x.q8[0], kGroupElements);
    _tile_loadd(7, numbers + 64 * kVectorsPerGroup, 64);
    _tile_dpbssd(1, 5, 7);
    _tile_loadd(4, q8 + 2 * sizeof x.q8[0], kGroupElements);
    _tile_loadd(6, numbers + 2 * 64 * kVectorsPerGroup, 64);
    _tile_dpbssd(2, 4, 6);
    _tile_loadd(5, q8 + 3 * sizeof x.q8[0], kGroupElements);
    _tile_loadd(7, numbers + 3 * 64 * kVectorsPerGroup, 64);
    _tile_dpbssd(3, 5, 7);
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
  }
  static void dot_one(const Unpacked& w, const VectorSet& x, uint32_t group, Sums* sums) {
    _tile_zero(0);
    _tile_loadd(4, x.q8[group][0], kGroupElements);
    _tile_loadd(6, w.codes[group * kVectorsPerGroup], 64);
    _tile_dpbssd(0, 4, 6);
    _tile_stored(0, sums[0], 64);
  }

  // Adds one group's sums to those of the whole sum group. Unrolled by hand: GCC else keeps `acc` in memory.
  static void add_group(const Unpacked& w, const VectorSet& x, uint32_t group, const Sums& sums,
                        __m512 (&acc)[kSetVectors]) {
    const __m512 scale = S::load_floats(w.scale[group]);
    const float* x_scale = x.scale[group / kGroupsPerSlice];
    for_each_vector([&]<int m>() {
      const __m512 factor = S::multiply(scale, S::broadcast(x_scale[m]));
      acc[m] = S::multiply_add(S::to_floats(VectorSet::load(sums[m])), factor, acc[m]);
    });
    if constexpr (C::kHasOffsets) {
      const __m512 offset = S::load_floats(w.offset[group]);
      for_each_vector(
          [&]<int m>() { acc[m] = S::multiply_add(offset, S::broadcast(x.negated_sum[group][m]), acc[m]); });
    }
  }

  template <typename Function>
  [[gnu::always_inline]] static void for_each_vector(Function function) {
    [&]<int... m>(std::integer_sequence<int, m...>) __attribute__((always_inline)) {
      (function.template operator()<m>(), ...);
    }
    (std::make_integer_sequence<int, kSetVectors>());
  }

  // One sum group of a panel times the n <= 16 vectors of a set.
  static void multiply_set(const Unpacked& w, uint32_t n_groups, const VectorSet& x, uint32_t n, const std::byte* ahead,
                           Sums* sums, const RowTotals<S>& totals, size_t out_stride) {
    __m512 acc[kSetVectors];
    for_each_vector([&]<int m>() { acc[m] = _mm512_setzero_ps(); });
    uint32_t group = 0;
    for (; group + 4 <= n_groups; group += 4) {
      dot_four(w, x, group, sums);
      for (int slice = 0; slice < 4 / kGroupsPerSlice; ++slice) {
        Portion::prefetch_slice(ahead, group / kGroupsPerSlice + slice);
      }
      add_group(w, x, group, sums[0], acc);
      add_group(w, x, group + 1, sums[1], acc);
      add_group(w, x, group + 2, sums[2], acc);
      add_group(w, x, group + 3, sums[3], acc);
    }
    for (; group < n_groups; ++group) {
      dot_one(w, x, group, sums);
      add_group(w, x, group, sums[0], acc);
    }
    for_each_vector([&]<int m>() {
      if (m < n) totals.add(m * out_stride, acc[m]);
    });
  }

  static void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                     size_t out_stride) {
    const TileConfig whole(kSetVectors, kGroupElements), last((x.count - 1) % kSetVectors + 1, kGroupElements);
    typename Portion::Source source(w);
    Unpacked unpacked;
    VectorSet sets[kBatch / kSetVectors];
    alignas(64) Sums sums[4] = {};  // rows of missing vectors stay zero
    for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
      const uint32_t n_slices = (w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup) / kSliceElements;
      const uint32_t n_blocks = n_slices / C::kSlices;
      for (uint32_t batch = 0; batch < x.count; batch += kBatch) {
        const uint32_t n = x.count - batch < kBatch ? x.count - batch : kBatch;
        const auto left = [&](uint32_t v) { return n - v < kSetVectors ? n - v : kSetVectors; };
        for (uint32_t v = 0; v < n; v += kSetVectors) {
          sets[v / kSetVectors].fill(x, batch + v, left(v), begin, n_slices);
        }
        for (uint32_t panel = row_begin / kPanelRows; panel * kPanelRows < row_end; ++panel) {
          const std::byte* blocks = source.get(panel, begin / kSliceElements / C::kSlices, n_blocks);
          const std::byte* ahead = source.next(blocks);
          Portion::unpack(blocks, n_blocks, prepare, unpacked);
          // GCC's tile loads do not say that they read memory.
          std::atomic_signal_fence(std::memory_order_seq_cst);
          for (uint32_t v = 0; v < n; v += kSetVectors, ahead = nullptr) {
            if (v == 0 || left(v) < kSetVectors) (left(v) == kSetVectors ? whole : last).load();
            const RowTotals<S> totals{out + (batch + v) * out_stride + panel * kPanelRows,
                                      Portion::rows_of(panel, row_end), begin == 0};
            multiply_set(unpacked, n_slices * kGroupsPerSlice, sets[v / kSetVectors], left(v), ahead, sums, totals,
                         out_stride);
          }
        }
      }
    }
    _tile_release();
  }
};

void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
            size_t out_stride) {
  const auto on_tiles = [&]<WeightType kType>() {
    AmxMatmul<kType>::matmul(w, x, row_begin, row_end, out, out_stride);
  };
  if (x.count >= kSetVectors) {
    switch (w.type) {
      case WeightType::kQ4_0:
        return on_tiles.operator()<WeightType::kQ4_0>();
      case WeightType::kQ4_1:
        return on_tiles.operator()<WeightType::kQ4_1>();
      case WeightType::kQ5_0:
        return on_tiles.operator()<WeightType::kQ5_0>();
      case WeightType::kQ5_1:
        return on_tiles.operator()<WeightType::kQ5_1>();
      case WeightType::kQ8_0:
        return on_tiles.operator()<WeightType::kQ8_0>();
      case WeightType::kQ2_K:
        return on_tiles.operator()<WeightType::kQ2_K>();
      case WeightType::kQ3_K:
        return on_tiles.operator()<WeightType::kQ3_K>();
      case WeightType::kQ4_K:
        return on_tiles.operator()<WeightType::kQ4_K>();
      case WeightType::kQ5_K:
        return on_tiles.operator()<WeightType::kQ5_K>();
      case WeightType::kQ6_K:
        return on_tiles.operator()<WeightType::kQ6_K>();
      case WeightType::kF32:
      case WeightType::kF16:
      case WeightType::kBF16:
        break;  // floating-point tiles would round in another order
    }
  }
  matrix_kernels_avx512().matmul(w, x, row_begin, row_end, out, out_stride);
}

}  // namespace

const MatrixKernels& matrix_kernels_amx() {
  static const MatrixKernels kernels = [] {
    MatrixKernels k = matrix_kernels_avx512();
    k.matmul = matmul;
    return k;
  }();
  return kernels;
}

}  // namespace leanstream::kernels
