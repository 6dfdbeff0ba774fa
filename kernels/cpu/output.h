#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/matrix.h"

namespace leanstream::kernels {
namespace {

// Adds group sums to the totals of up to 16 rows.
template <typename S>
struct RowTotals {
  using Floats = typename S::Floats;

  float* out;        // first row of the panel
  uint32_t n_rows;   // of them that exist: 1..16
  bool first_group;  // totals start from zero

  void add(size_t offset, Floats group_sum) const {
    float* total = out + offset;
    if (n_rows == kPanelRows) {
      const Floats before = first_group ? S::broadcast(0.0f) : S::load_floats(total);
      S::store_floats(total, S::add(before, group_sum));
      return;
    }
    float sums[kPanelRows];
    S::store_floats(sums, group_sum);
    for (uint32_t r = 0; r < n_rows; ++r) total[r] = (first_group ? 0.0f : total[r]) + sums[r];
  }
};

}  // namespace
}  // namespace leanstream::kernels
