#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace leanstream::io {

// A drive to imitate: a read of `size` bytes takes latency_us plus size / bandwidth(size), and all reads together move
// no more than bandwidth. Written "2.0GB/s@64K:3.5GB/s@256K,lat=90us" (bandwidth by request size, log-interpolated,
// flat beyond the ends). A pool given a model holds completions back until the imitated drive would have them.
struct StorageModel {
  struct Point {
    uint32_t size_bytes;
    double bytes_per_s;
  };
  std::vector<Point> points;  // by rising size
  uint32_t latency_us = 0;

  static Result<StorageModel> parse(std::string_view text);
  double bandwidth(uint32_t size_bytes) const;
};

// When each read of an imitated drive completes: pure arithmetic on a clock that the caller gives. Single-thread.
class Throttle {
 public:
  explicit Throttle(StorageModel model);
  // The completion time of a read issued at now_us. Reads share the bandwidth in the order of issue.
  uint64_t completion_us(uint64_t now_us, uint32_t size_bytes);

 private:
  StorageModel model_;
  double busy_until_us_ = 0;
};

}  // namespace leanstream::io
