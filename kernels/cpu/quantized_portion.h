#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/codecs.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/pack.h"

namespace leanstream::kernels {
namespace {

inline constexpr uint32_t kSliceElements = 32;
inline constexpr uint32_t kGroupSlices = kSumGroup / kSliceElements;
inline constexpr uint32_t kSetVectors = 16;  // vectors that are interleaved, one per SIMD lane

// What meets in one sum group of a product with a quantised type: a panel's part of it, and the vectors' parts.
template <typename S, WeightType kType>
struct QuantizedPortion {
  using C = Codec<S, kType>;
  using Ints = typename S::Ints;
  using Floats = typename S::Floats;
  static constexpr int kGroupsPerSlice = C::kGroupsPerSlice;
  static constexpr uint32_t kGroupsOfSum = kGroupSlices * kGroupsPerSlice;
  static constexpr int kWordsPerGroup = 8 / kGroupsPerSlice;
  // Codes are unsigned where numbers are not: a dot product begins with what that adds, negated.
  static constexpr int kExcess = C::kOffset + (C::kSigned ? S::kSignedBias : 0);
  static constexpr uint32_t kGroupBlocks = kGroupSlices / C::kSlices;  // blocks of a whole sum group

  template <typename Function>
  static void for_each_slice(Function function) {
    [&]<int... kSlice>(std::integer_sequence<int, kSlice...>) {
      (function.template operator()<kSlice>(), ...);
    }
    (std::make_integer_sequence<int, C::kSlices>());
  }

  // The panel's part ------------------------------------------------------------------------------------------------

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

  // Asks for what slice `slice` of the panel part at `ahead` takes; nullptr for nothing. Inlined by force: GCC takes a
  // function that only prefetches for one without effect, and drops its calls.
  [[gnu::always_inline]] static void prefetch_slice(const std::byte* ahead, uint32_t slice) {
    constexpr size_t kBytes = C::kPanelBlockBytes / C::kSlices;
    if (ahead == nullptr) return;
    for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(ahead + slice * kBytes + line, 0, 1);
  }

  // A panel's part in one sum group.
  struct Unpacked {
    alignas(64) std::byte codes[kSumGroup / 4][64];
    alignas(64) float scale[kGroupsOfSum][kPanelRows];
    alignas(64) float offset[C::kHasOffsets ? kGroupsOfSum : 1][kPanelRows];
  };

  // Fills `out` from n_blocks blocks of a panel; prepare(codes) gives the codes as the dot product wants them.
  template <typename Prepare>
  static void unpack(const std::byte* panel, uint32_t n_blocks, Prepare prepare, Unpacked& out) {
    for (uint32_t b = 0; b < n_blocks; ++b, panel += C::kPanelBlockBytes) {
      Floats scale[C::kGroups], offset[C::kGroups];
      C::scales(panel, scale, offset);
      for (int g = 0; g < C::kGroups; ++g) {
        S::store_floats(out.scale[b * C::kGroups + g], scale[g]);
        if constexpr (C::kHasOffsets) S::store_floats(out.offset[b * C::kGroups + g], offset[g]);
      }
      for_each_slice([&]<int kSlice>() {
        Ints code[8];
        C::template codes<kSlice>(panel, code);
        for (int t = 0; t < 8; ++t) S::store(out.codes[(b * C::kSlices + kSlice) * 8 + t], prepare(code[t]));
      });
    }
  }

  // The vectors' parts ----------------------------------------------------------------------------------------------

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
};

}  // namespace
}  // namespace leanstream::kernels
