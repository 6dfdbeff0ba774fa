#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leanstream::io {

// Bandwidth at `size_bytes`: straight over log(size) between `points` (by rising size_bytes), flat beyond the ends. 0
// for no points.
template <typename Point>
double interpolate_bandwidth(const std::vector<Point>& points, uint32_t size_bytes) {
  if (points.empty()) return 0;
  if (size_bytes <= points.front().size_bytes) return points.front().bytes_per_s;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &low = points[i - 1], &high = points[i];
    if (size_bytes > high.size_bytes) continue;
    const double share =
        std::log(double(size_bytes) / low.size_bytes) / std::log(double(high.size_bytes) / low.size_bytes);
    return low.bytes_per_s + share * (high.bytes_per_s - low.bytes_per_s);
  }
  return points.back().bytes_per_s;
}

}  // namespace leanstream::io
