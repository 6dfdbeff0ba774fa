#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/codecs.h"

namespace leanstream::kernels {
namespace {

// From file rows to a panel: a transposition of 16 rows of words, block by block.

template <typename S>
struct PanelPacker {
  using Ints = typename S::Ints;

  // `n` 2-byte fields of 16 rows.
  static void halves(const std::byte* rows, size_t stride, uint32_t n, std::byte* out) {
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t r = 0; r < kPanelRows; ++r) std::memcpy(out + 32 * i + 2 * r, rows + r * stride + 2 * i, 2);
    }
  }

  static void four_words(const std::byte* rows, size_t stride, std::byte* out) {
    Ints words[4];
    S::transpose_4_words(rows, stride, words);
    for (int t = 0; t < 4; ++t) S::store(out + 64 * t, words[t]);
  }

  // `n` 4-byte fields of 16 rows, n >= 4. The last step may repeat fields of the one before.
  static void words(const std::byte* rows, size_t stride, uint32_t n, std::byte* out) {
    for (uint32_t t = 0; t + 4 <= n; t += 4) four_words(rows + 4 * t, stride, out + 64 * t);
    if (n % 4 != 0) four_words(rows + 4 * (n - 4), stride, out + 64 * (n - 4));
  }

  // Asks for the `bytes` of each row that are used `ahead` bytes later. Inlined by force: GCC takes a function that
  // only prefetches for one without effect, and drops its calls.
  [[gnu::always_inline]] static void prefetch(const std::byte* rows, size_t stride, size_t bytes, size_t ahead) {
    for (uint32_t r = 0; r < kPanelRows; ++r) {
      for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(rows + r * stride + line + ahead, 0, 1);
    }
  }

  template <WeightType kType>
  static void blocks(const std::byte* rows, size_t stride, uint32_t n_blocks, size_t ahead, std::byte* panel) {
    constexpr BlockShape kShape = block_shape(kType);
    constexpr size_t kBytes = traits(kType).block_bytes;
    constexpr uint32_t kBlocksPerPrefetch = kBytes < 64 ? 64 / kBytes : 1;
    for (uint32_t b = 0; b < n_blocks; ++b, rows += kBytes) {
      if (b % kBlocksPerPrefetch == 0) prefetch(rows, stride, kBytes, ahead);
      halves(rows, stride, kShape.lead, panel);
      panel += 32 * kShape.lead;
      words(rows + 2 * kShape.lead, stride, kShape.words, panel);
      panel += 64 * kShape.words;
      halves(rows + 2 * kShape.lead + 4 * kShape.words, stride, kShape.trail, panel);
      panel += 32 * kShape.trail;
    }
  }

  static void floats(const std::byte* rows, size_t stride, uint32_t n, size_t ahead, std::byte* panel) {
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
      if (i % 16 == 0) prefetch(rows + 4 * i, stride, 64, ahead);
      four_words(rows + 4 * i, stride, panel + 64 * i);
    }
    for (; i < n; ++i) {
      for (uint32_t r = 0; r < kPanelRows; ++r) std::memcpy(panel + 64 * i + 4 * r, rows + r * stride + 4 * i, 4);
    }
  }

  // A word of a row is two elements, which go to two columns.
  static void half_floats(const std::byte* rows, size_t stride, uint32_t n, size_t ahead, std::byte* panel) {
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
      if (i % 32 == 0) prefetch(rows + 2 * i, stride, 64, ahead);
      Ints words[4];
      S::transpose_4_words(rows + 2 * i, stride, words);
      for (int t = 0; t < 4; ++t) {
        S::store_low_halves(panel + 32 * (i + 2 * t), words[t]);
        S::store_low_halves(panel + 32 * (i + 2 * t + 1), S::template shift_right<16>(words[t]));
      }
    }
    halves(rows + 2 * i, stride, n - i, panel + 32 * i);
  }

  // `n_blocks` blocks of 16 rows; a block of the float types is one element. What stands `ahead` bytes after each is
  // asked for meanwhile.
  template <WeightType kType>
  static void pack(const std::byte* rows, size_t stride, uint32_t n_blocks, size_t ahead, std::byte* panel) {
    if constexpr (kType == WeightType::kF32) {
      floats(rows, stride, n_blocks, ahead, panel);
    } else if constexpr (traits(kType).block_elements == 1) {
      half_floats(rows, stride, n_blocks, ahead, panel);
    } else {
      blocks<kType>(rows, stride, n_blocks, ahead, panel);
    }
  }

  // The same for fewer than 16 rows: the missing ones are zeros.
  template <WeightType kType>
  static void pack_some(uint32_t n_rows, const std::byte* rows, size_t stride, uint32_t n_blocks, size_t ahead,
                        std::byte* panel) {
    if (n_rows == kPanelRows) return pack<kType>(rows, stride, n_blocks, ahead, panel);
    constexpr size_t kBytes = traits(kType).block_bytes;
    constexpr uint32_t kStep = traits(kType).block_elements == 1 ? 32 : 1;  // blocks at a time
    std::byte padded[kPanelRows * kStep * kBytes] = {};
    for (uint32_t b = 0; b < n_blocks; b += kStep) {
      const uint32_t n = n_blocks - b < kStep ? n_blocks - b : kStep;
      for (uint32_t r = 0; r < n_rows; ++r)
        std::memcpy(padded + r * n * kBytes, rows + r * stride + b * kBytes, n * kBytes);
      std::memset(padded + n_rows * n * kBytes, 0, (kPanelRows - n_rows) * n * kBytes);
      pack<kType>(padded, n * kBytes, n, 0, panel + b * kPanelRows * kBytes);
    }
  }
};

}  // namespace
}  // namespace leanstream::kernels
