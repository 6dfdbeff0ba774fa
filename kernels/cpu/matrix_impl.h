#pragma once

// The matrix kernels of one SIMD target S, put together. Included by matrix_*.cpp only.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/float_matmul.h"
#include "kernels/cpu/matrix_kernels.h"
#include "kernels/cpu/quantized_matmul.h"

namespace leanstream::kernels {
namespace {

template <typename S>
struct MatrixImpl {
  using Ints = typename S::Ints;
  using Floats = typename S::Floats;

  // Calls function.template operator()<type>().
  template <typename Function>
  static void with_type(WeightType type, Function function) {
    switch (type) {
      case WeightType::kF32:
        return function.template operator()<WeightType::kF32>();
      case WeightType::kF16:
        return function.template operator()<WeightType::kF16>();
      case WeightType::kBF16:
        return function.template operator()<WeightType::kBF16>();
      case WeightType::kQ4_0:
        return function.template operator()<WeightType::kQ4_0>();
      case WeightType::kQ4_1:
        return function.template operator()<WeightType::kQ4_1>();
      case WeightType::kQ5_0:
        return function.template operator()<WeightType::kQ5_0>();
      case WeightType::kQ5_1:
        return function.template operator()<WeightType::kQ5_1>();
      case WeightType::kQ8_0:
        return function.template operator()<WeightType::kQ8_0>();
      case WeightType::kQ2_K:
        return function.template operator()<WeightType::kQ2_K>();
      case WeightType::kQ3_K:
        return function.template operator()<WeightType::kQ3_K>();
      case WeightType::kQ4_K:
        return function.template operator()<WeightType::kQ4_K>();
      case WeightType::kQ5_K:
        return function.template operator()<WeightType::kQ5_K>();
      case WeightType::kQ6_K:
        return function.template operator()<WeightType::kQ6_K>();
    }
  }

  static void pack_panel(WeightType type, uint32_t cols, uint32_t n_rows, const std::byte* rows, size_t row_stride,
                         std::byte* panel) {
    with_type(type, [&]<WeightType kType>() {
      PanelPacker<S>::template pack_some<kType>(n_rows, rows, row_stride, cols / traits(kType).block_elements,
                                                kSumGroup / traits(kType).block_elements * traits(kType).block_bytes,
                                                panel);
    });
  }

  static void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                     size_t out_stride) {
    with_type(w.type, [&]<WeightType kType>() {
      if constexpr (traits(kType).block_elements == 1) {
        FloatMatmul<S, kType>::matmul(w, x, row_begin, row_end, out, out_stride);
      } else {
        QuantizedMatmul<S, kType>::matmul(w, x, row_begin, row_end, out, out_stride);
      }
    });
  }

  // One block of one row: unpacks the panel's block, takes a lane.
  template <WeightType kType>
  static void dequantize_block(const std::byte* block, uint32_t lane, float factor, float* out) {
    if constexpr (traits(kType).block_elements == 1) {
      float row[kPanelRows];
      S::store_floats(row, FloatMatmul<S, kType>::load(block));
      out[0] = row[lane] * factor;
    } else {
      using C = Codec<S, kType>;
      Floats scale[C::kGroups], offset[C::kGroups];
      C::scales(block, scale, offset);
      float scales[C::kGroups][kPanelRows], offsets[C::kGroups][kPanelRows];
      for (int g = 0; g < C::kGroups; ++g) {
        S::store_floats(scales[g], scale[g]);
        if constexpr (C::kHasOffsets) S::store_floats(offsets[g], offset[g]);
      }
      QuantizedPortion<S, kType>::for_each_slice([&]<int kSlice>() {
        Ints code[8];
        C::template codes<kSlice>(block, code);
        for (int t = 0; t < 8; ++t) {
          std::byte words[64];
          S::store(words, code[t]);
          const int g = kSlice * C::kGroupsPerSlice + t * C::kGroupsPerSlice / 8;
          for (int b = 0; b < 4; ++b) {
            const auto number = static_cast<int8_t>(words[4 * lane + b]);
            float value = scales[g][lane] * static_cast<float>(number - C::kOffset);
            if constexpr (C::kHasOffsets) value -= offsets[g][lane];
            out[32 * kSlice + 4 * t + b] = value * factor;
          }
        }
      });
    }
  }

  static void dequantize_row(const Matrix& w, uint32_t row, float factor, float* out) {
    with_type(w.type, [&]<WeightType kType>() {
      constexpr uint32_t kElements = traits(kType).block_elements;
      constexpr size_t kBytes = traits(kType).block_bytes;
      const size_t n_blocks = w.cols / kElements;
      for (size_t b = 0; b < n_blocks; ++b) {
        if (w.layout == Layout::kPanel) {
          const std::byte* block = w.data + (row / kPanelRows * n_blocks + b) * kPanelRows * kBytes;
          dequantize_block<kType>(block, row % kPanelRows, factor, out + b * kElements);
        } else {
          std::byte block[kPanelRows * kBytes];
          PanelPacker<S>::template pack_some<kType>(1, w.data + (row * n_blocks + b) * kBytes, 0, 1, 0, block);
          dequantize_block<kType>(block, 0, factor, out + b * kElements);
        }
      }
    });
  }

  // A block whose 127 / max|x| overflows is all zeros; one with an infinity or a NaN gets the scale NaN, so that the
  // damage shows in every product.
  static void quantize(const float* x, uint32_t cols, int8_t* q8, float* scale, int32_t* sum16) {
    constexpr int32_t kInfinity = 0x7f800000;
    constexpr float kSmallest = 127.0f / 0x1.fffffep+127f;
    const Ints magnitude = S::broadcast(0x7fffffff);
    for (uint32_t i = 0; i < cols; i += 32) {
      const Floats low = S::load_floats(x + i), high = S::load_floats(x + i + 16);
      const int32_t largest_bits =
          S::largest(S::max(S::bit_and(S::float_bits(low), magnitude), S::bit_and(S::float_bits(high), magnitude)));
      float largest;
      __builtin_memcpy(&largest, &largest_bits, sizeof largest);
      const bool finite = largest_bits < kInfinity;
      const float factor = finite && largest > kSmallest ? 127.0f / largest : 0.0f;
      scale[i / 32] = !finite ? __builtin_nanf("") : factor == 0.0f ? 0.0f : largest / 127.0f;
      for (int half = 0; half < 2; ++half) {
        Ints numbers = S::broadcast(0);
        if (factor != 0.0f) numbers = S::to_ints(S::multiply(half == 0 ? low : high, S::broadcast(factor)));
        S::store_low_bytes(q8 + i + 16 * half, numbers);
        sum16[i / 16 + half] = S::sum(numbers);
      }
    }
  }

  static constexpr MatrixKernels kKernels = {pack_panel, matmul, dequantize_row, quantize};
};

}  // namespace
}  // namespace leanstream::kernels
