#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "io/read_pool.h"
#include "io/storage_curve.h"
#include "runtime/log.h"
#include "scheduler/stream_plan.h"

namespace leanstream::runtime {

// How weights that are not resident are read, as the runtime's creator wants it. A value type.
struct StorageSettings {
  std::string state_folder;               // where a drive's measured curve is kept; "": nothing is measured or kept
  std::optional<io::StorageModel> model;  // a drive to imitate
  io::PoolParams::Kind kind = io::PoolParams::Kind::kAuto;
};

// Requests that go well with a drive: of a size and a number in flight that reach nearly all of its bandwidth.
struct RequestShape {
  uint32_t size_bytes = uint32_t{1} << 20;
  uint32_t depth = 16;
  double bytes_per_s = 0;  // what the drive gives for it; 0: not measured
};

// Of the curve, or of an imitated drive, with no more than 16 MiB in flight.
RequestShape request_shape(const io::StorageCurve& curve);
RequestShape request_shape(const io::StorageModel& model);

// What was found out about the drives of files, so that a process finds it out once. Thread-safe.
class DriveCache {
 public:
  std::optional<RequestShape> find(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto at = shapes_.find(path);
    return at == shapes_.end() ? std::nullopt : std::optional(at->second);
  }
  void keep(const std::string& path, const RequestShape& shape) {
    const std::lock_guard lock(mutex_);
    shapes_.insert_or_assign(path, shape);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, RequestShape> shapes_;
};

io::PoolParams pool_params(const StorageSettings& settings, const RequestShape& shape, const Log& log);

}  // namespace leanstream::runtime
