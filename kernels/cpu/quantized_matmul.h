#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/output.h"
#include "kernels/cpu/quantized_portion.h"

namespace leanstream::kernels {
namespace {

// matmul of the quantised types. With up to eight vectors each panel's codes go from memory through registers; with
// more, a panel's part of one sum group is unpacked once into the first-level cache and multiplied with all vectors,
// eight at a time.
template <typename S, WeightType kType>
struct QuantizedMatmul {
  using Portion = QuantizedPortion<S, kType>;
  using C = typename Portion::C;
  using Ints = typename S::Ints;
  using Floats = typename S::Floats;
  using Source = typename Portion::Source;
  using Unpacked = typename Portion::Unpacked;
  using VectorSet = typename Portion::VectorSet;
  static constexpr int kExcess = Portion::kExcess;
  static constexpr int kGroupsPerSlice = Portion::kGroupsPerSlice;
  static constexpr uint32_t kGroupsOfSum = Portion::kGroupsOfSum;
  static constexpr int kWordsPerGroup = Portion::kWordsPerGroup;
  static constexpr uint32_t kBatch = 64;  // vectors that share one unpacking

  // Ahead of the block being read, into the second-level cache: of 2 to 16 KiB and either cache the fastest, 7 to 16 %
  // faster than a plain read loop (bench_matmul, Sapphire Rapids).
  static constexpr size_t kPrefetchBytes = 6144;

  static Ints dot4(Ints sum, Ints codes, Ints x) {
    if constexpr (C::kSigned) return S::dot4_signed(sum, codes, x);
    return S::dot4(sum, codes, x);
  }
  static Ints prepare(Ints codes) {
    if constexpr (C::kSigned) return S::bias_signed(codes);
    return codes;
  }
  template <int kSlice>
  static void codes(const std::byte* block, Ints out[8]) {
    C::template codes<kSlice>(block, out);
    for (int t = 0; t < 8; ++t) out[t] = prepare(out[t]);
  }

  // One vector ------------------------------------------------------------------------------------------------------

  // A vector's part in one sum group, ready for the inner loop.
  struct Vector {
    const int8_t* q8;                 // [32 * slices]
    const float* scale;               // [slices]
    int32_t start[kGroupsOfSum];      // -kExcess * the sum of each group's q8
    float negated_sum[kGroupsOfSum];  // -(scale * that sum): meets the offsets

    Vector(const Activations& x, uint32_t begin, uint32_t n_slices)
        : q8(x.q8 + begin), scale(x.scale + begin / kSliceElements) {
      const int32_t* sum16 = x.sum16 + begin / 16;
      for (uint32_t g = 0; g < n_slices * kGroupsPerSlice; ++g) {
        const int32_t sum = kGroupsPerSlice == 2 ? sum16[g] : sum16[2 * g] + sum16[2 * g + 1];
        start[g] = -kExcess * sum;
        if (C::kHasOffsets) negated_sum[g] = -(scale[g / kGroupsPerSlice] * static_cast<float>(sum));
      }
    }
  };

  // A panel's group sum.
  static Floats dot_group(const std::byte* block, uint32_t n_blocks, const Vector& x) {
    Floats acc = S::broadcast(0.0f);
    for (uint32_t b = 0; b < n_blocks; ++b, block += C::kPanelBlockBytes) {
      acc = dot_block(block, b * C::kSlices, x, acc);
    }
    return acc;
  }

  // Adds one block's part of a panel's group sum to `acc`; its first slice is the vector's slice `first`.
  static Floats dot_block(const std::byte* block, uint32_t first, const Vector& x, Floats acc) {
    for (size_t line = 0; line < C::kPanelBlockBytes; line += 64)
      __builtin_prefetch(block + kPrefetchBytes + line, 0, 1);
    Floats scale[C::kGroups], offset[C::kGroups];
    C::scales(block, scale, offset);
    Portion::for_each_slice([&]<int kSlice>() {
      Ints code[8];
      codes<kSlice>(block, code);
      for (int g = 0; g < kGroupsPerSlice; ++g) {
        const uint32_t group = (first + kSlice) * kGroupsPerSlice + g;
        const int of_block = kSlice * kGroupsPerSlice + g;
        Ints sum = S::broadcast(kExcess == 0 ? 0 : x.start[group]);
        for (int t = g * kWordsPerGroup; t < (g + 1) * kWordsPerGroup; ++t) {
          sum = dot4(sum, code[t], S::broadcast4(x.q8 + kSliceElements * (first + kSlice) + 4 * t));
        }
        const Floats factor = S::multiply(scale[of_block], S::broadcast(x.scale[first + kSlice]));
        acc = S::multiply_add(S::to_floats(sum), factor, acc);
        if constexpr (C::kHasOffsets) {
          acc = S::multiply_add(offset[of_block], S::broadcast(x.negated_sum[group]), acc);
        }
      }
    });
    return acc;
  }

  // Many vectors ----------------------------------------------------------------------------------------------------

  // Group sums of kVectors vectors of a set, from vector `v` on.
  template <int kVectors>
  static void dot_unpacked(const Unpacked& w, uint32_t n_slices, const VectorSet& x, uint32_t v, const std::byte* ahead,
                           Floats acc[kVectors]) {
    for (int m = 0; m < kVectors; ++m) acc[m] = S::broadcast(0.0f);
    for (uint32_t slice = 0; slice < n_slices; ++slice) {
      Portion::prefetch_slice(ahead, slice);
      for (int g = 0; g < kGroupsPerSlice; ++g) {
        const uint32_t group = slice * kGroupsPerSlice + g;
        Ints sum[kVectors];
        for (int m = 0; m < kVectors; ++m) sum[m] = S::broadcast(kExcess == 0 ? 0 : x.start[group][v + m]);
        for (int t = 0; t < kWordsPerGroup; ++t) {
          const uint32_t word = group * kWordsPerGroup + t;
          const Ints code = S::load(w.codes[word]);
          for (int m = 0; m < kVectors; ++m) sum[m] = dot4(sum[m], code, S::broadcast4(x.q8[word][v + m]));
        }
        const Floats scale = S::load_floats(w.scale[group]);
        for (int m = 0; m < kVectors; ++m) {
          const Floats factor = S::multiply(scale, S::broadcast(x.scale[slice][v + m]));
          acc[m] = S::multiply_add(S::to_floats(sum[m]), factor, acc[m]);
        }
        if constexpr (C::kHasOffsets) {
          const Floats offset = S::load_floats(w.offset[group]);
          for (int m = 0; m < kVectors; ++m) {
            acc[m] = S::multiply_add(offset, S::broadcast(x.negated_sum[group][v + m]), acc[m]);
          }
        }
      }
    }
  }

  // The same straight from a panel: with few vectors an unpacking would be used too seldom. `ahead` as for
  // prefetch_slice.
  template <int kVectors>
  static void dot_panel(const std::byte* block, uint32_t n_blocks, const VectorSet& x, const std::byte* ahead,
                        Floats acc[kVectors]) {
    for (int m = 0; m < kVectors; ++m) acc[m] = S::broadcast(0.0f);
    for (uint32_t b = 0; b < n_blocks; ++b, block += C::kPanelBlockBytes) {
      Floats scale[C::kGroups], offset[C::kGroups];
      C::scales(block, scale, offset);
      Portion::for_each_slice([&]<int kSlice>() {
        const uint32_t slice = b * C::kSlices + kSlice;
        Portion::prefetch_slice(ahead, slice);
        Ints code[8];
        codes<kSlice>(block, code);
        for (int m = 0; m < kVectors; ++m) {
          for (int g = 0; g < kGroupsPerSlice; ++g) {
            const uint32_t group = slice * kGroupsPerSlice + g;
            const int of_block = kSlice * kGroupsPerSlice + g;
            Ints sum = S::broadcast(kExcess == 0 ? 0 : x.start[group][m]);
            for (int t = g * kWordsPerGroup; t < (g + 1) * kWordsPerGroup; ++t) {
              sum = dot4(sum, code[t], S::broadcast4(x.q8[8 * slice + t][m]));
            }
            const Floats factor = S::multiply(scale[of_block], S::broadcast(x.scale[slice][m]));
            acc[m] = S::multiply_add(S::to_floats(sum), factor, acc[m]);
            if constexpr (C::kHasOffsets) {
              acc[m] = S::multiply_add(offset[of_block], S::broadcast(x.negated_sum[group][m]), acc[m]);
            }
          }
        }
      });
    }
  }

  // Vectors v .. v + n - 1 of a set, in steps of kVectors, then of less.
  template <int kVectors>
  static void multiply_set(const Unpacked& w, uint32_t n_slices, const VectorSet& x, uint32_t v, uint32_t n,
                           const std::byte* ahead, const RowTotals<S>& totals, size_t out_stride) {
    for (; v + kVectors <= n; v += kVectors, ahead = nullptr) {
      Floats acc[kVectors];
      dot_unpacked<kVectors>(w, n_slices, x, v, ahead, acc);
      for (int m = 0; m < kVectors; ++m) totals.add((v + m) * out_stride, acc[m]);
    }
    if constexpr (kVectors > 1) {
      if (v < n) multiply_set<kVectors / 2>(w, n_slices, x, v, n, ahead, totals, out_stride);
    }
  }

  // The whole matrix ------------------------------------------------------------------------------------------------

  static void multiply_one(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out) {
    Source source(w);
    for (uint32_t panel = row_begin / kPanelRows; panel * kPanelRows < row_end; ++panel) {
      for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
        const uint32_t n_slices = (w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup) / kSliceElements;
        const uint32_t n_blocks = n_slices / C::kSlices;
        const std::byte* blocks = source.get(panel, begin / kSliceElements / C::kSlices, n_blocks);
        const RowTotals<S> totals{out + panel * kPanelRows, Portion::rows_of(panel, row_end), begin == 0};
        totals.add(0, dot_group(blocks, n_blocks, Vector(x, begin, n_slices)));
      }
    }
  }

  // Up to kVectors vectors; the missing ones count as zeros.
  template <int kVectors>
  static void multiply_few(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                           size_t out_stride) {
    Source source(w);
    VectorSet set;
    for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
      const uint32_t n_slices = (w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup) / kSliceElements;
      const uint32_t n_blocks = n_slices / C::kSlices;
      set.fill(x, 0, x.count, begin, n_slices);
      for (uint32_t panel = row_begin / kPanelRows; panel * kPanelRows < row_end; ++panel) {
        const std::byte* blocks = source.get(panel, begin / kSliceElements / C::kSlices, n_blocks);
        Floats acc[kVectors];
        dot_panel<kVectors>(blocks, n_blocks, set, source.next(blocks), acc);
        const RowTotals<S> totals{out + panel * kPanelRows, Portion::rows_of(panel, row_end), begin == 0};
        for (uint32_t m = 0; m < x.count; ++m) totals.add(m * out_stride, acc[m]);
      }
    }
  }

  static void multiply_many(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                            size_t out_stride) {
    Source source(w);
    Unpacked unpacked;
    VectorSet sets[kBatch / kSetVectors];
    for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
      const uint32_t n_slices = (w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup) / kSliceElements;
      const uint32_t n_blocks = n_slices / C::kSlices;
      const uint32_t first_block = begin / kSliceElements / C::kSlices;
      for (uint32_t tile = 0; tile < x.count; tile += kBatch) {
        const uint32_t n = x.count - tile < kBatch ? x.count - tile : kBatch;
        for (uint32_t v = 0; v < n; v += kSetVectors) {
          sets[v / kSetVectors].fill(x, tile + v, n - v < kSetVectors ? n - v : kSetVectors, begin, n_slices);
        }
        for (uint32_t panel = row_begin / kPanelRows; panel * kPanelRows < row_end; ++panel) {
          const std::byte* blocks = source.get(panel, first_block, n_blocks);
          Portion::unpack(blocks, n_blocks, prepare, unpacked);
          const std::byte* ahead = source.next(blocks);
          for (uint32_t v = 0; v < n; v += kSetVectors, ahead = nullptr) {
            float* first = out + (tile + v) * out_stride + panel * kPanelRows;
            const RowTotals<S> totals{first, Portion::rows_of(panel, row_end), begin == 0};
            multiply_set<8>(unpacked, n_slices, sets[v / kSetVectors], 0, n - v < kSetVectors ? n - v : kSetVectors,
                            ahead, totals, out_stride);
          }
        }
      }
    }
  }

  static void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                     size_t out_stride) {
    if (x.count == 1) return multiply_one(w, x, row_begin, row_end, out);
    if (x.count == 2) return multiply_few<2>(w, x, row_begin, row_end, out, out_stride);
    if (x.count <= 4) return multiply_few<4>(w, x, row_begin, row_end, out, out_stride);
    if (x.count <= 8) return multiply_few<8>(w, x, row_begin, row_end, out, out_stride);
    multiply_many(w, x, row_begin, row_end, out, out_stride);
  }
};

}  // namespace
}  // namespace leanstream::kernels
