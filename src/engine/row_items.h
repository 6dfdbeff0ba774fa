#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/checked.h"
#include "model/weights.h"

namespace leanstream::engine {

// How the rows of some matrices are shared out among workers: first what is resident of all of them, a few panels an
// item, then their pieces, one an item, in the order in which they come. Borrows the matrices.
class RowItems {
 public:
  struct Item {
    uint32_t matrix = 0;  // of those given
    bool streamed = false;
    uint32_t piece = 0;  // of that matrix, where streamed
    uint32_t row_begin = 0, row_end = 0;
  };

  RowItems(std::span<const model::WeightMatrix* const> matrices, uint32_t panels_per_item)
      : matrices_(matrices), rows_per_item_(panels_per_item * kPanelRows) {
    for (const model::WeightMatrix* matrix : matrices) count_ += resident_items(*matrix) + matrix->piece_count();
  }

  uint32_t count() const { return count_; }

  Item operator[](uint32_t index) const {
    for (uint32_t m = 0; m < matrices_.size(); ++m) {
      const uint32_t items = resident_items(*matrices_[m]);
      if (index < items) return range(m, false, index, 0, rows_per_item_, matrices_[m]->resident.rows);
      index -= items;
    }
    uint32_t m = 0;
    for (; index >= matrices_[m]->piece_count(); ++m) index -= matrices_[m]->piece_count();
    const model::StreamedRows& streamed = matrices_[m]->streamed;
    return range(m, true, index, streamed.begin, streamed.rows_per_piece, matrices_[m]->rows);
  }

 private:
  uint32_t resident_items(const model::WeightMatrix& matrix) const {
    return static_cast<uint32_t>(ceil_div(matrix.resident.rows, rows_per_item_));
  }
  static Item range(uint32_t matrix, bool streamed, uint32_t index, uint32_t first_row, uint32_t step, uint32_t end) {
    const uint32_t begin = first_row + index * step;
    return {matrix, streamed, index, begin, std::min(begin + step, end)};
  }

  const std::span<const model::WeightMatrix* const> matrices_;
  const uint32_t rows_per_item_;
  uint32_t count_ = 0;
};

}  // namespace leanstream::engine
