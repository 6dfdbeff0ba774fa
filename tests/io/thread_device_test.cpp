#include "io/thread_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "io/clock.h"
#include "tests/io/scratch_file.h"

namespace leanstream::io {
namespace {

// More readers than CPUs and reads of no length to speak of: readers are interrupted at every point of taking a read.
TEST(ThreadDevice, loses_no_read_when_readers_are_interrupted_while_they_take_one) {
  constexpr uint32_t kReaders = 6, kReads = 150'000;
  constexpr uint64_t kPatienceUs = 10'000'000;
  const ScratchFile scratch(4096);
  const int fd = ::open(scratch.path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  Result<std::unique_ptr<Device>> device = create_thread_device({&fd, 1}, kReaders);
  ASSERT_TRUE(device.ok()) << device.status().message();
  std::vector<std::byte> buffers(kReaders);
  std::vector<DeviceResult> results;
  uint32_t issued = 0, arrived = 0;
  const auto issue = [&](uint32_t id) { (*device)->issue({id, 0, issued++ % 4096, &buffers[id], 1}); };
  for (uint32_t id = 0; id < kReaders; ++id) issue(id);
  while (arrived < kReads) {
    results.clear();
    const uint64_t start = now_us();
    while (results.empty() && now_us() - start < kPatienceUs)  // collect() may return early, with nothing
      ASSERT_TRUE((*device)->collect(kPatienceUs, &results).ok());
    ASSERT_FALSE(results.empty()) << "after " << arrived << " reads";
    for (const DeviceResult& result : results) {
      ASSERT_EQ(result.result, 1);
      ++arrived;
      if (issued < kReads) issue(result.id);
    }
  }
  device = Status(Code::kCancelled, "done with it");
  ::close(fd);
}

}  // namespace
}  // namespace leanstream::io
