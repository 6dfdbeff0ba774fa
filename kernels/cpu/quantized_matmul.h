#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/codecs.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/output.h"
#include "kernels/cpu/pack.h"

namespace leanstream::kernels {
namespace {

// matmul of the quantised types. With one vector each panel's codes go from memory through registers; with more, a
// panel's part of one sum group is unpacked once into the first-level cache and multiplied with all vectors, eight at a
// time.

inline constexpr uint32_t kSliceElements = 32;
inline constexpr uint32_t kGroupSlices = kSumGroup / kSliceElements;
inline constexpr uint32_t kSetVectors = 16;   // vectors that are interleaved, one per SIMD lane
inline constexpr uint32_t kTileVectors = 64;  // vectors that share one unpacking
inline constexpr uint32_t kTileSets = kTileVectors / kSetVectors;

template <typename S, WeightType kType>
struct QuantizedMatmul {
  using C = Codec<S, kType>;
  using Ints = typename S::Ints;
  using Floats = typename S::Floats;
  static constexpr int kGroupsPerSlice = C::kGroupsPerSlice;
  static constexpr uint32_t kGroupsOfSum = kGroupSlices * kGroupsPerSlice;
  static constexpr int kWordsPerGroup = 8 / kGroupsPerSlice;
  // Codes are unsigned where numbers are not: a dot product begins with what that adds, negated.
  static constexpr int kExcess = C::kOffset + (C::kSigned ? S::kSignedBias : 0);
  static constexpr uint32_t kGroupBlocks = kGroupSlices / C::kSlices;  // blocks of a whole sum group

  static Ints dot4(Ints sum, Ints codes, Ints x) {
    if constexpr (C::kSigned) return S::dot4_signed(sum, codes, x);
    return S::dot4(sum, codes, x);
  }
  template <int kSlice>
  static void codes(const std::byte* block, Ints out[8]) {
    C::template codes<kSlice>(block, out);
    if constexpr (C::kSigned) {
      for (int t = 0; t < 8; ++t) out[t] = S::bias_signed(out[t]);
    }
  }
  template <typename Function>
  static void for_each_slice(Function function) {
    [&]<int... kSlice>(std::integer_sequence<int, kSlice...>) {
      (function.template operator()<kSlice>(), ...);
    }
    (std::make_integer_sequence<int, C::kSlices>());
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
    for_each_slice([&]<int kSlice>() {
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

  // A panel's part in one sum group.
  struct Unpacked {
    alignas(64) std::byte codes[kSumGroup / 4][64];
    alignas(64) float scale[kGroupsOfSum][kPanelRows];
    alignas(64) float offset[C::kHasOffsets ? kGroupsOfSum : 1][kPanelRows];
  };

  static void unpack(const std::byte* panel, uint32_t n_blocks, Unpacked& out) {
    for (uint32_t b = 0; b < n_blocks; ++b, panel += C::kPanelBlockBytes) {
      Floats scale[C::kGroups], offset[C::kGroups];
      C::scales(panel, scale, offset);
      for (int g = 0; g < C::kGroups; ++g) {
        S::store_floats(out.scale[b * C::kGroups + g], scale[g]);
        if constexpr (C::kHasOffsets) S::store_floats(out.offset[b * C::kGroups + g], offset[g]);
      }
      for_each_slice([&]<int kSlice>() {
        Ints code[8];
        codes<kSlice>(panel, code);
        for (int t = 0; t < 8; ++t) S::store(out.codes[(b * C::kSlices + kSlice) * 8 + t], code[t]);
      });
    }
  }

  // What sixteen vectors bring to one sum group beside their numbers, interleaved: item [..][v] is vector v's.
  struct VectorScales {
    alignas(64) float scale[kGroupSlices][kSetVectors];
    alignas(64) int32_t start[kGroupsOfSum][kSetVectors];
    alignas(64) float negated_sum[C::kHasOffsets ? kGroupsOfSum : 1][kSetVectors];

    // Vectors first .. first + n - 1 of x, n <= 16, over columns begin .. begin + 32 * n_slices - 1.
    void fill(const Activations& x, uint32_t first, uint32_t n, uint32_t begin, uint32_t n_slices) {
      const size_t scale_stride = x.cols / kSliceElements;
      interleave(x.scale + first * scale_stride + begin / kSliceElements, scale_stride * 4, n, n_slices * 4, scale);
      alignas(64) int32_t sum16[kSumGroup / 16][kSetVectors];
      const size_t sum_stride = x.cols / 16;
      interleave(x.sum16 + first * sum_stride + begin / 16, sum_stride * 4, n, n_slices * 8, sum16);
      for (uint32_t g = 0; g < n_slices * kGroupsPerSlice; ++g) {
        const Ints sum = kGroupsPerSlice == 2 ? load(sum16[g]) : S::add(load(sum16[2 * g]), load(sum16[2 * g + 1]));
        S::store(reinterpret_cast<std::byte*>(start[g]), S::multiply(sum, S::broadcast(-kExcess)));
        if constexpr (C::kHasOffsets) {
          const Floats scaled = S::multiply(S::load_floats(scale[g / kGroupsPerSlice]), S::to_floats(sum));
          S::store_floats(negated_sum[g], S::multiply(scaled, S::broadcast(-1.0f)));
        }
      }
    }

    static Ints load(const int32_t* p) { return S::load(reinterpret_cast<const std::byte*>(p)); }
  };

  // The same with their numbers.
  struct VectorSet : VectorScales {
    alignas(64) int8_t q8[kSumGroup / 4][kSetVectors][4];

    void fill(const Activations& x, uint32_t first, uint32_t n, uint32_t begin, uint32_t n_slices) {
      VectorScales::fill(x, first, n, begin, n_slices);
      interleave(x.q8 + size_t{first} * x.cols + begin, x.cols, n, n_slices * kSliceElements, q8);
    }
  };

  // Words of n <= 16 rows, `stride_bytes` apart, side by side in 16 lanes; missing rows are zeros.
  static void interleave(const void* rows, size_t stride_bytes, uint32_t n, uint32_t bytes, void* out) {
    constexpr uint32_t kChunk = 256;
    for (uint32_t at = 0; at < bytes; at += kChunk) {
      const std::byte* from = static_cast<const std::byte*>(rows) + at;
      std::byte* to = static_cast<std::byte*>(out) + at * kSetVectors;
      const uint32_t length = bytes - at < kChunk ? bytes - at : kChunk;
      size_t stride = stride_bytes;
      std::byte padded[kSetVectors * kChunk];
      if (n < kSetVectors || length % 16 != 0) {
        std::memset(padded, 0, sizeof padded);
        for (uint32_t r = 0; r < n; ++r) std::memcpy(padded + r * kChunk, from + r * stride_bytes, length);
        from = padded;
        stride = kChunk;
      }
      for (uint32_t i = 0; i < length; i += 16) {
        Ints words[4];
        S::transpose_4_words(from + i, stride, words);
        for (uint32_t t = 0; t < 4 && i + 4 * t < length; ++t) S::store(to + (i + 4 * t) * kSetVectors, words[t]);
      }
    }
  }

  // Asks for what slice `slice` of the panel part at `ahead` takes; nullptr for nothing. Inlined by force: GCC takes a
  // function that only prefetches for one without effect, and drops its calls.
  [[gnu::always_inline]] static void prefetch_slice(const std::byte* ahead, uint32_t slice) {
    constexpr size_t kBytes = C::kPanelBlockBytes / C::kSlices;
    if (ahead == nullptr) return;
    for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(ahead + slice * kBytes + line, 0, 1);
  }

  // Group sums of kVectors vectors of a set, from vector `v` on.
  template <int kVectors>
  static void dot_unpacked(const Unpacked& w, uint32_t n_slices, const VectorSet& x, uint32_t v, const std::byte* ahead,
                           Floats acc[kVectors]) {
    for (int m = 0; m < kVectors; ++m) acc[m] = S::broadcast(0.0f);
    for (uint32_t slice = 0; slice < n_slices; ++slice) {
      prefetch_slice(ahead, slice);
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
      for_each_slice([&]<int kSlice>() {
        const uint32_t slice = b * C::kSlices + kSlice;
        prefetch_slice(ahead, slice);
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

  // Ahead of the block being read, into the second-level cache: of 2 to 16 KiB and either cache the fastest, by 7 to 16
  // % over a plain read loop (bench_matmul, Sapphire Rapids).
  static constexpr size_t kPrefetchBytes = 6144;

  // Where a panel's part in a sum group stands interleaved: in place, or packed from file rows into `packed`.
  struct Source {
    const Matrix& w;
    explicit Source(const Matrix& matrix) : w(matrix) {}
    alignas(64) std::byte packed[kPanelRows * kGroupBlocks * traits(kType).block_bytes];

    const std::byte* get(uint32_t panel, uint32_t first_block, uint32_t n_blocks) {
      const size_t blocks_per_row = w.cols / traits(kType).block_elements;
      constexpr size_t kBytes = traits(kType).block_bytes;
      if (w.layout == Layout::kPanel) return w.data + (panel * blocks_per_row + first_block) * C::kPanelBlockBytes;
      const uint32_t row = panel * kPanelRows;
      const uint32_t n_rows = w.rows - row < kPanelRows ? w.rows - row : kPanelRows;
      // Next comes the next sum group of these rows, or the first one of the next panel's.
      const bool last = first_block + n_blocks == blocks_per_row;
      const size_t ahead = (last ? kPanelRows * blocks_per_row - first_block : n_blocks) * kBytes;
      PanelPacker<S>::template pack_some<kType>(n_rows, w.data + (row * blocks_per_row + first_block) * kBytes,
                                                blocks_per_row * kBytes, n_blocks, ahead, packed);
      return packed;
    }

    // The same part of the next panel, if it is in memory as it stands.
    const std::byte* next(const std::byte* blocks) const {
      if (w.layout == Layout::kFile) return nullptr;
      return blocks + w.cols / traits(kType).block_elements * C::kPanelBlockBytes;
    }
  };

  static uint32_t rows_of(uint32_t panel, uint32_t row_end) {
    const uint32_t left = row_end - panel * kPanelRows;
    return left < kPanelRows ? left : kPanelRows;
  }

  static void multiply_one(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out) {
    Source source(w);
    for (uint32_t panel = row_begin / kPanelRows; panel * kPanelRows < row_end; ++panel) {
      for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
        const uint32_t n_slices = (w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup) / kSliceElements;
        const uint32_t n_blocks = n_slices / C::kSlices;
        const std::byte* blocks = source.get(panel, begin / kSliceElements / C::kSlices, n_blocks);
        const RowTotals<S> totals{out + panel * kPanelRows, rows_of(panel, row_end), begin == 0};
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
        const RowTotals<S> totals{out + panel * kPanelRows, rows_of(panel, row_end), begin == 0};
        for (uint32_t m = 0; m < x.count; ++m) totals.add(m * out_stride, acc[m]);
      }
    }
  }

  static void multiply_many(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                            size_t out_stride) {
    Source source(w);
    Unpacked unpacked;
    VectorSet sets[kTileSets];
    for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
      const uint32_t n_slices = (w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup) / kSliceElements;
      const uint32_t n_blocks = n_slices / C::kSlices;
      const uint32_t first_block = begin / kSliceElements / C::kSlices;
      for (uint32_t tile = 0; tile < x.count; tile += kTileVectors) {
        const uint32_t n = x.count - tile < kTileVectors ? x.count - tile : kTileVectors;
        for (uint32_t v = 0; v < n; v += kSetVectors) {
          sets[v / kSetVectors].fill(x, tile + v, n - v < kSetVectors ? n - v : kSetVectors, begin, n_slices);
        }
        for (uint32_t panel = row_begin / kPanelRows; panel * kPanelRows < row_end; ++panel) {
          const std::byte* blocks = source.get(panel, first_block, n_blocks);
          unpack(blocks, n_blocks, unpacked);
          const std::byte* ahead = source.next(blocks);
          for (uint32_t v = 0; v < n; v += kSetVectors, ahead = nullptr) {
            float* first = out + (tile + v) * out_stride + panel * kPanelRows;
            const RowTotals<S> totals{first, rows_of(panel, row_end), begin == 0};
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
