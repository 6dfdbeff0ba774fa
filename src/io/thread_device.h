#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "io/device.h"

namespace leanstream::io {

// A device of `readers` threads that call pread(), one read each at a time. `descriptors` is copied; those that a
// stalled reader still uses may be closed. Errors: kIo when threads cannot be started.
Result<std::unique_ptr<Device>> create_thread_device(std::span<const int> descriptors, uint32_t readers);

}  // namespace leanstream::io
