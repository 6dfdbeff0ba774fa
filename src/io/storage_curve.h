#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  std::vector<Point> points;  // by rising depth, then size
  std::string device;         // what was measured: file system, block device, its model and size
  int64_t measured_unix_s = 0;

  // Straight over log(size), at the measured depth nearest in ratio; flat beyond the ends. 0 when empty.
  double bandwidth(uint32_t size_bytes, uint32_t depth) const;

  // The least size, then depth, within `share` of the best bandwidth. Not of an empty curve.
  Point knee(double share) const;

  std::string to_json() const;
  // Errors: kMalformed.
  static Result<StorageCurve> from_json(const std::string& text);
};

// Asks, between two measurements of some 30 ms each, whether to stop. May be empty.
struct StopHook {
  bool (*poll)(void* user) = nullptr;
  void* user = nullptr;
};

// Measures random reads of `file` into `arena` through a pool with `params` (its depth is raised to the largest
// measured), about `budget_ms` in all, each size and depth twice: the better counts. Those that need more room than the
// arena has, or than 16 MiB, are left out. Errors: the pool's; kInvalidArgument where file or arena are too small for
// one read; kCancelled.
Result<StorageCurve> measure_storage(const StorageFile& file, std::span<std::byte> arena, const PoolParams& params,
                                     uint32_t budget_ms, StopHook stop = {});

// The curve kept for the file's device in `state_folder`/storage-<device>.json, which is made where it is missing.
// Measured and kept when there is none that can be read, when it is older than 30 days, or when a short check of its
// best point differs by more than 25 %. With params.model nothing is looked up or kept. A folder that cannot be written
// is a log line.
Result<StorageCurve> load_or_measure(const std::string& state_folder, const StorageFile& file,
                                     std::span<std::byte> arena, const PoolParams& params, StopHook stop = {});

}  // namespace leanstream::io
