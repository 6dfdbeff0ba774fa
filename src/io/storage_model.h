#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace leanstream::io {

// A drive to imitate: a read of `size` bytes takes latency_us plus size / bandwidth(size), and all reads together move
// no more than bandwidth. Written "2.0GB/s@64K:3.5GB/s@256K,lat=90us" (GB: 10^9 bytes, MB: 10^6; K, M: 2^10, 2^20;
// bandwidth by request size, straight over log(size), flat beyond the ends). A value type.
struct StorageModel {
  struct Point {
    uint32_t size_bytes;
    double bytes_per_s;
  };
  std::vector<Point> points;  // by rising size; at least one
  uint32_t latency_us = 0;

  // Errors: kInvalidArgument with the part that is wrong.
  static Result<StorageModel> parse(std::string_view text);
  double bandwidth(uint32_t size_bytes) const;
};

// When each read of an imitated drive completes: arithmetic on a clock that the caller gives. Thread-safe, lock-free:
// the workers of a pool share one drive.
class Throttle {
 public:
  explicit Throttle(StorageModel model);
  // The completion time of a read issued at now_us. Reads occupy the drive one after the other, in the order of the
  // calls; the latency comes on top and overlaps.
  uint64_t completion_us(uint64_t now_us, uint32_t size_bytes);

 private:
  const StorageModel model_;
  std::atomic<uint64_t> busy_until_ns_{0};
};

}  // namespace leanstream::io
