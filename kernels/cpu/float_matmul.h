#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/output.h"
#include "kernels/cpu/pack.h"

namespace leanstream::kernels {
namespace {

// matmul of F32, F16 and BF16. A row's sum is one chain of fused multiply-adds per sum group, so speed comes from
// running several chains at once: two or four panels times up to eight vectors.
template <typename S, WeightType kType>
struct FloatMatmul {
  using Floats = typename S::Floats;
  static constexpr size_t kColumnBytes = kPanelRows * traits(kType).block_bytes;
  static constexpr uint32_t kMaxPanels = 4;
  static constexpr uint32_t kMaxVectors = 8;
  static constexpr uint32_t kChunk = 128;  // columns that are packed at a time from file rows
  static constexpr size_t kPrefetchBytes = 2048;

  static Floats load(const std::byte* p) {
    if constexpr (kType == WeightType::kF32) return S::load_floats(p);
    if constexpr (kType == WeightType::kF16) return S::load_halves(p);
    if constexpr (kType == WeightType::kBF16) return S::load_bfloat16s(p);
  }

  using Sums = float[kMaxPanels][kMaxVectors][kPanelRows];

  // Continues the sums of kPanels panels, `stride` bytes apart, times kVectors vectors over n columns. Vector m's
  // number for column i is x[m * vector_stride + i].
  template <int kPanels, int kVectors>
  static void dot(const std::byte* panels, size_t stride, const float* x, size_t vector_stride, uint32_t n,
                  Sums& sums) {
    Floats acc[kPanels][kVectors];
    for (int p = 0; p < kPanels; ++p) {
      for (int m = 0; m < kVectors; ++m) acc[p][m] = S::load_floats(sums[p][m]);
    }
    for (uint32_t i = 0; i < n; ++i) {
      Floats w[kPanels];
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* column = panels + p * stride + i * kColumnBytes;
        __builtin_prefetch(column + kPrefetchBytes);
        w[p] = load(column);
      }
      for (int m = 0; m < kVectors; ++m) {
        const Floats factor = S::broadcast(x[m * vector_stride + i]);
        for (int p = 0; p < kPanels; ++p) acc[p][m] = S::multiply_add(w[p], factor, acc[p][m]);
      }
    }
    for (int p = 0; p < kPanels; ++p) {
      for (int m = 0; m < kVectors; ++m) S::store_floats(sums[p][m], acc[p][m]);
    }
  }

  struct Job {
    const Matrix& w;
    const Activations& x;
    uint32_t row_end;
    float* out;
    size_t out_stride;
    alignas(64) std::byte packed[kMaxPanels * kChunk * kColumnBytes];
    alignas(64) Sums sums;

    Job(const Matrix& matrix, const Activations& activations, uint32_t end, float* result, size_t stride)
        : w(matrix), x(activations), row_end(end), out(result), out_stride(stride) {}

    void pack_chunk(uint32_t panel, uint32_t n_panels, uint32_t begin, uint32_t n) {
      constexpr size_t kBytes = traits(kType).block_bytes;
      for (uint32_t p = 0; p < n_panels; ++p) {
        const uint32_t row = (panel + p) * kPanelRows;
        const uint32_t n_rows = w.rows - row < kPanelRows ? w.rows - row : kPanelRows;
        PanelPacker<S>::template pack_some<kType>(n_rows, w.data + (size_t{row} * w.cols + begin) * kBytes,
                                                  w.cols * kBytes, n, n * kBytes, packed + p * kChunk * kColumnBytes);
      }
    }

    // One sum group of kPanels panels times kVectors vectors.
    template <int kPanels, int kVectors>
    void group(uint32_t panel, uint32_t vector, uint32_t begin, uint32_t n) {
      for (int p = 0; p < kPanels; ++p) {
        for (int m = 0; m < kVectors; ++m) S::store_floats(sums[p][m], S::broadcast(0.0f));
      }
      const float* input = x.f32 + size_t{vector} * x.cols + begin;
      if (w.layout == Layout::kPanel) {
        const size_t stride = w.cols * kColumnBytes;
        dot<kPanels, kVectors>(w.data + panel * stride + begin * kColumnBytes, stride, input, x.cols, n, sums);
      } else {
        for (uint32_t at = 0; at < n; at += kChunk) {
          const uint32_t length = n - at < kChunk ? n - at : kChunk;
          pack_chunk(panel, kPanels, begin + at, length);
          dot<kPanels, kVectors>(packed, kChunk * kColumnBytes, input + at, x.cols, length, sums);
        }
      }
      for (int p = 0; p < kPanels; ++p) {
        const uint32_t row = (panel + p) * kPanelRows;
        const uint32_t n_rows = row_end - row < kPanelRows ? row_end - row : kPanelRows;
        for (int m = 0; m < kVectors; ++m) {
          const RowTotals<S> totals{out + row, n_rows, begin == 0};
          totals.add((vector + m) * out_stride, S::load_floats(sums[p][m]));
        }
      }
    }

    template <int kPanels, int kVectors>
    void vectors(uint32_t panel, uint32_t vector, uint32_t begin, uint32_t n) {
      for (; vector + kVectors <= x.count; vector += kVectors) group<kPanels, kVectors>(panel, vector, begin, n);
      if constexpr (kVectors > 1) {
        if (vector < x.count) vectors<kPanels, kVectors / 2>(panel, vector, begin, n);
      }
    }

    template <int kPanels, int kVectors>
    void panels(uint32_t panel, uint32_t end_panel) {
      for (; panel + kPanels <= end_panel; panel += kPanels) {
        for (uint32_t begin = 0; begin < w.cols; begin += kSumGroup) {
          vectors<kPanels, kVectors>(panel, 0, begin, w.cols - begin < kSumGroup ? w.cols - begin : kSumGroup);
        }
      }
      if constexpr (kPanels > 1) {
        if (panel < end_panel) panels<kPanels / 2, kVectors>(panel, end_panel);
      }
    }
  };

  static void matmul(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                     size_t out_stride) {
    Job job(w, x, row_end, out, out_stride);
    const uint32_t first = row_begin / kPanelRows, end = (row_end + kPanelRows - 1) / kPanelRows;
    if (x.count == 1) return job.template panels<kMaxPanels, 1>(first, end);
    job.template panels<2, kMaxVectors>(first, end);
  }
};

}  // namespace
}  // namespace leanstream::kernels
