#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/weight_type.h"

namespace leanstream {

// Rows that one panel interleaves; also the SIMD width, in rows, of every matrix kernel.
inline constexpr uint32_t kPanelRows = 16;

// The canonical sum. Every dot product over `cols` elements is summed in one order, whatever the layout, batch size,
// thread count or SIMD target: elements (blocks, for quantised types) in file order within a group of kSumGroup
// columns, each group from zero; then the group sums in file order. 1024 holds whole blocks of every type, and the
// column tiles of a pack, so a tile's share of a down projection can be summed apart and added later.
inline constexpr uint32_t kSumGroup = 1024;

enum class Layout : uint8_t {
  kFile,   // rows back to back, as in the GGUF file
  kPanel,  // 16 rows interleaved block by block (docs/kernels.md); same bytes, rows padded to a multiple of 16
};

// A dense weight matrix, borrowed. Row r of a kFile matrix is at data + r * row_bytes(type, cols); panel p of a kPanel
// matrix (rows 16p .. 16p+15) is at data + p * panel_bytes(type, cols).
struct Matrix {
  WeightType type = WeightType::kF32;
  Layout layout = Layout::kFile;
  uint32_t rows = 0;
  uint32_t cols = 0;
  const std::byte* data = nullptr;

  explicit operator bool() const { return data != nullptr; }
};

constexpr size_t panel_bytes(WeightType type, uint64_t cols) { return kPanelRows * row_bytes(type, cols); }
constexpr uint32_t panel_count(uint32_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }
constexpr size_t matrix_bytes(WeightType type, Layout layout, uint64_t rows, uint64_t cols) {
  return layout == Layout::kFile ? rows * row_bytes(type, cols)
                                 : (rows + kPanelRows - 1) / kPanelRows * panel_bytes(type, cols);
}

}  // namespace leanstream
