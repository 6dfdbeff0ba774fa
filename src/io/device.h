#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace leanstream::io {

// One request to the kernel. `descriptor` counts the pool's descriptors: file f has 2f, as it was opened, and 2f + 1,
// its buffered twin.
struct DeviceRead {
  uint32_t id = 0;  // below depth(); the caller's, until its result came
  uint32_t descriptor = 0;
  uint64_t offset = 0;
  std::byte* buffer = nullptr;
  uint32_t size = 0;
};

struct DeviceResult {
  uint32_t id;
  int32_t result;  // bytes, or -errno
};

// What moves bytes: a ring, reader threads, or a fake. One worker thread calls everything except wake() and the
// destructor; each id is in use once at a time. Destruction with reads outstanding returns, and leaves to the kernel
// what the kernel still holds.
class Device {
 public:
  virtual ~Device() = default;

  virtual uint32_t depth() const = 0;  // reads it takes at once

  // The worker thread's first call.
  virtual Status start() { return {}; }

  // Takes a read; it may rest until the next collect().
  virtual void issue(const DeviceRead& read) = 0;

  // Sends what was issued, then waits for a result, for wake(), or for `timeout_us` (kNever: without limit). Appends
  // results to `results`, at most depth(). An error means that the device is broken.
  virtual Status collect(uint64_t timeout_us, std::vector<DeviceResult>* results) = 0;

  // Asks the kernel to give a read back early. Its result comes through collect() as ever, or never.
  virtual void cancel(uint32_t id) = 0;

  // Ends a collect() that waits, or the next one. From any thread.
  virtual void wake() = 0;
};

}  // namespace leanstream::io
