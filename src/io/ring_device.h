#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/device.h"

namespace leanstream::io {

// What of io_uring a device could get.
struct RingFacts {
  bool registered_buffers = true, registered_files = true;
  std::vector<std::string> refusals;  // one sentence each
};

// A device on io_uring: lanes with a ring each, registered descriptors and arena. Lane 0 is the worker thread: it fills
// all submission queues and reads all completion queues; siblings only submit what it put into theirs. Errors of
// create(): kUnsupported where the kernel forbids or lacks io_uring, found by a trial read of the first descriptor. The
// files behind `descriptors`, which DeviceRead::descriptor counts, and `arena` outlive the device.
Result<std::unique_ptr<Device>> create_ring_device(std::span<const int> descriptors, std::span<std::byte> arena,
                                                   uint32_t lanes, uint32_t depth_per_lane, RingFacts* facts);

}  // namespace leanstream::io
