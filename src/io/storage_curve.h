#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/read_pool.h"

namespace leanstream::io {

// Measured read bandwidth as a function of request size and requests in flight. A value type.
struct StorageCurve {
  struct Point {
    uint32_t size_bytes;
    uint32_t depth;
    double bytes_per_s;
  };
  std::vector<Point> points;
  std::string device;        // what was measured: file system and block device
  int64_t measured_unix_s = 0;

  // Interpolated in log(size) at the nearest measured depth; clamped at the ends. 0 when empty.
  double bandwidth(uint32_t size_bytes, uint32_t depth) const;

  // The least size and depth within `share` (0.97) of the best bandwidth.
  Point knee(double share) const;

  std::string to_json() const;
  static Result<StorageCurve> from_json(const std::string& text);
};

// Measures with random aligned reads of `file` into `arena` (registered, huge pages), about `budget_ms` in all.
Result<StorageCurve> measure_storage(const StorageFile& file, std::span<std::byte> arena, const PoolParams& params,
                                     uint32_t budget_ms);

// The curve kept for the file's device in `state_folder`/storage-<device>.json; measured and kept when there is none, or
// it is older than 30 days, or `measured` now differs by more than 25 %. A folder that cannot be written is a log line.
Result<StorageCurve> load_or_measure(const std::string& state_folder, const StorageFile& file,
                                     std::span<std::byte> arena, const PoolParams& params);

}  // namespace leanstream::io
