// The AVX-512 kernels, with the products of 16 and more vectors on the matrix unit (AMX). Its integer sums are exact,
// so all results stay those of the other targets, bit for bit.

#include <immintrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matrix_kernels.h"
#include "kernels/cpu/quantized_matmul.h"
#include "kernels/cpu/simd_avx512.h"

namespace leanstream::kernels {
namespace {

// Weights are 16 rows wide: row t of a weight tile is vector t of a panel's slice, as it stands. Vectors come 16 at a
// time straight from Activations::q8; the last ones of a batch, fewer than 16, have tiles of their own. Compilers want
// the numbers of tiles as literals: 0 and 1 are sums, 2 and 3 vectors, 4 and 5 weights, 6 the last sums, 7 the last
// vectors.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  // n_last: vectors of the last set, 1..16. k: elements of an inner product, 16 or 32.
  TileConfig(uint32_t n_last, int k) {
    for (const int sums : {0, 1, 6}) row_bytes[sums] = 64;
    for (const int vectors : {2, 3, 7}) row_bytes[vectors] = static_cast<uint16_t>(k);
    for (const int whole : {0, 1, 2, 3}) rows[whole] = kSetVectors;
    for (const int last : {6, 7}) rows[last] = static_cast<uint8_t>(n_last);
    for (const int weights : {4, 5}) {
      row_bytes[weights] = 64;
      rows[weights] = static_cast<uint8_t>(k / 4);
    }
  }
};

template <WeightType kType>
struct AmxMatmul {
  using S = Avx512;
  using Portion = QuantizedMatmul<S, kType>;
  using C = typename Portion::C;
  using VectorScales = typename Portion::VectorScales;
  static constexpr int kGroupsPerSlice = Portion::kGroupsPerSlice;
  static constexpr int kGroupElements = 32 / kGroupsPerSlice;
  static constexpr uint32_t kBatch = 128;  // vectors that share one unpacking
  using Sums = int32_t[kSetVectors][kPanelRows];

  // A panel's part in one sum group, as signed numbers.
  struct Unpacked {
    alignas(64) std::byte numbers[kSumGroup / 4][64];
    alignas(64) float scale[Portion::kGroupsOfSum][kPanelRows];
    alignas(64) float offset[C::kHasOffsets ? Portion::kGroupsOfSum : 1][kPanelRows];
  };

  static void unpack(const std::byte* panel, uint32_t n_blocks, Unpacked& out) {
    for (uint32_t b = 0; b < n_blocks; ++b, panel += C::kPanelBlockBytes) {
      __m512 scale[C::kGroups], offset[C::kGroups];
      C::scales(panel, scale, offset);
      for (int g = 0; g < C::kGroups; ++g) {
        S::store_floats(out.scale[b * C::kGroups + g], scale[g]);
        if constexpr (C::kHasOffsets) S::store_floats(out.offset[b * C::kGroups + g], offset[g]);
      }
      Portion::for_each_slice([&]<int kSlice>() {
        __m512i code[8];
        C::template codes<kSlice>(panel, code);
        for (int t = 0; t < 8; ++t) {
          if constexpr (C::kOffset != 0) code[t] = _mm512_sub_epi8(code[t], _mm512_set1_epi8(C::kOffset));
          S::store(out.numbers[(b * C::kSlices + kSlice) * 8 + t], code[t]);
        }
      });
    }
  }

  // sums[m][r] = the exact dot product of one group of row r and vector m, on one of the sets of tiles.
  static void dot_even(const std::byte* numbers, const int8_t* q8, size_t q8_stride, Sums& sums) {
    _tile_zero(0);
    _tile_loadd(2, q8, q8_stride);
    _tile_loadd(4, numbers, 64);
    _tile_dpbssd(0, 2, 4);
    _tile_stored(0, sums, 64);
  }
  static void dot_odd(const std::byte* numbers, const int8_t* q8, size_t q8_stride, Sums& sums) {
    _tile_zero(1);
    _tile_loadd(3, q8, q8_stride);
    _tile_loadd(5, numbers, 64);
    _tile_dpbssd(1, 3, 5);
    _tile_stored(1, sums, 64);
  }
  static void dot_last(const std::byte* numbers, const int8_t* q8, size_t q8_stride, Sums& sums) {
    _tile_zero(6);
    _tile_loadd(7, q8, q8_stride);
    _tile_loadd(4, numbers, 64);
    _tile_dpbssd(6, 7, 4);
    _tile_stored(6, sums, 64);
  }

  static void add_group(const Unpacked& w, const VectorScales& x, uint32_t group, const Sums& sums,
                        __m512 (&acc)[kSetVectors]) {
    const __m512 scale = S::load_floats(w.scale[group]);
    for (uint32_t m = 0; m < kSetVectors; ++m) {
      const __m512 factor = S::multiply(scale, S::broadcast(x.scale[group / kGroupsPerSlice][m]));
      acc[m] = S::multiply_add(S::to_floats(VectorScales::load(sums[m])), factor, acc[m]);
    }
    if constexpr (C::kHasOffsets) {
      const __m512 offset = S::load_floats(w.offset[group]);
      for (uint32_t m = 0; m < kSetVectors; ++m) {
        acc[m] = S::multiply_add(offset, S::broadcast(x.negated_sum[group][m]), acc[m]);
      }
    }
  }

  // One sum group of a panel times n <= 16 vectors, the last of which may be missing.
  static void multiply_set(const Unpacked& w, uint32_t n_groups, const VectorScales& x, const int8_t* q8,
                           size_t q8_stride, uint32_t n, const std::byte* ahead, const RowTotals<S>& totals,
                           size_t out_stride) {
    constexpr size_t kWordsPerGroup = kGroupElements / 4;
    alignas(64) Sums sums[2] = {};
    __m512 acc[kSetVectors];
    for (__m512& a : acc) a = _mm512_setzero_ps();
    if (n == kSetVectors) {
      // Two in flight: a group's sums are stored while the group before is added up.
      dot_even(w.numbers[0], q8, q8_stride, sums[0]);
      for (uint32_t group = 0; group < n_groups; ++group) {
        const uint32_t next = group + 1;
        if (next < n_groups) {
          const std::byte* numbers = w.numbers[next * kWordsPerGroup];
          const int8_t* vectors = q8 + next * kGroupElements;
          if (next % 2 == 1) {
            dot_odd(numbers, vectors, q8_stride, sums[1]);
          } else {
            dot_even(numbers, vectors, q8_stride, sums[0]);
          }
        }
        if (group % kGroupsPerSlice == 0) Portion::prefetch_slice(ahead, group / kGroupsPerSlice);
        add_group(w, x, group, sums[group % 2], acc);
      }
    } else {
      for (uint32_t group = 0; group < n_groups; ++group) {
        dot_last(w.numbers[group * kWordsPerGroup], q8 + group * kGroupElements, q8_stride, sums[0]);
        add_group(w, x, group, sums[0], acc);
      }
    }
    for (uint32_t m = 0; m < n; ++m) totals.add(m * out_stride, acc[m]);
  }

  static void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                     size_t out_stride) {
    const uint32_t n_last = (x.count - 1) % kSetVectors + 1;
    const TileConfig config(n_last, kGroupElements);
    _tile_loadconfig(&config);
    typename Portion::Source source(w);
    Unpacked unpacked;
    VectorScales sets[kBatch / kSetVectors];
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
          unpack(blocks, n_blocks, unpacked);
          // GCC's tile loads do not say that they read memory.
          std::atomic_signal_fence(std::memory_order_seq_cst);
          for (uint32_t v = 0; v < n; v += kSetVectors, ahead = nullptr) {
            const RowTotals<S> totals{out + (batch + v) * out_stride + panel * kPanelRows,
                                      Portion::rows_of(panel, row_end), begin == 0};
            multiply_set(unpacked, n_slices * kGroupsPerSlice, sets[v / kSetVectors],
                         x.q8 + size_t{batch + v} * x.cols + begin, x.cols, left(v), ahead, totals, out_stride);
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
