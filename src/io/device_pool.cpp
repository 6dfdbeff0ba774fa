#include "io/device_pool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "io/clock.h"
#include "io/futex.h"
#include "io/pool_worker.h"

namespace leanstream::io {
namespace {

constexpr uint64_t kWaitSpinUs = 20;      // less than the sleep and the wake-up that it may spare
constexpr uint64_t kWaitPollUs = 20'000;  // how often a sleeper looks for a stop or a failure
// wait() gives up this long after twice the deadline: a worker that only waits for a busy CPU tells its story first.
constexpr uint64_t kStuckGraceUs = 2'000'000;
constexpr uint64_t kQuiescePollUs = 200;
constexpr uint64_t kFailedQuiesceUs = 100'000;  // a failed pool has waited its deadline already

// Whether the flag came up within the spin.
bool spin_for(const ArrivalFlag& flag, uint32_t fill) {
  constexpr int kLooksPerClockRead = 16;
  const uint64_t give_up = now_us() + kWaitSpinUs;
  do {
    for (int i = 0; i < kLooksPerClockRead; ++i) {
      if (flag.filled.load(std::memory_order_acquire) == fill) return true;
      spin_pause();
    }
  } while (now_us() < give_up);
  return false;
}

}  // namespace

Result<std::unique_ptr<ReadPool>> DevicePool::create(std::span<const StorageFile> files, const PoolParams& params,
                                                     std::vector<std::unique_ptr<Device>> devices, PoolFacts facts) {
  std::unique_ptr<DevicePool> pool(new DevicePool(files, params, std::move(facts)));
  for (std::unique_ptr<Device>& device : devices)
    pool->workers_.push_back(std::make_unique<PoolWorker>(pool.get(), std::move(device)));
  for (uint32_t i = 0; i < pool->workers_.size(); ++i)
    if (Status status = pool->workers_[i]->start(i); !status.ok()) {
      pool->fail(status);
      return status;
    }
  return std::unique_ptr<ReadPool>(std::move(pool));
}

DevicePool::DevicePool(std::span<const StorageFile> files, const PoolParams& params, PoolFacts facts)
    : files_(files), params_(params), facts_(std::move(facts)), said_refused_(files.size()) {
  if (params.model) throttle_ = std::make_unique<Throttle>(*params.model);
}

DevicePool::~DevicePool() {
  quiesce(failed() ? kFailedQuiesceUs : params_.deadline_us);
  quit_.store(true, std::memory_order_release);
  for (const auto& worker : workers_) worker->wake();
  for (const auto& worker : workers_) worker->stop();
}

bool DevicePool::quiesce(uint64_t timeout_us) {
  const uint64_t start = now_us();
  const uint32_t halts = halts_.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (const auto& worker : workers_) worker->wake();
  for (;;) {
    const bool all =
        std::all_of(workers_.begin(), workers_.end(), [&](const auto& worker) { return worker->halted(halts); });
    if (all) return true;
    if (now_us() - start >= timeout_us) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(kQuiescePollUs));
  }
}

void DevicePool::submit(std::span<const Read> reads) {
  const auto count = static_cast<uint32_t>(workers_.size());
  const uint32_t first =
      count == 1 ? 0 : next_worker_.fetch_add(static_cast<uint32_t>(reads.size()), std::memory_order_relaxed);
  for (uint32_t i = 0; i < reads.size(); ++i) {
    if (!workers_[(first + i) % count]->offer(reads[i]))
      fail(internal_error("more than " + std::to_string(params_.capacity) + " reads were queued"));
  }
  for (uint32_t i = 0; i < std::min<size_t>(count, reads.size()); ++i) workers_[(first + i) % count]->wake_if_asleep();
}

void DevicePool::drop_before(uint32_t generation) {
  // No wake-up: workers look before they issue. Releases to heed_requests().
  drop_.store((uint64_t{1} << 32) | generation, std::memory_order_release);
}

Status DevicePool::wait(const ArrivalFlag& flag, uint32_t fill, bool (*stop)(void*), void* stop_user) {
  if (flag.filled.load(std::memory_order_acquire) == fill || spin_for(flag, fill)) return {};
  const uint64_t start = now_us();
  for (;;) {
    // Sequentially consistent, both: see raise_flag().
    flag.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t filled = flag.filled.load(std::memory_order_seq_cst);
    if (filled != fill && !failed()) futex_wait(flag.filled, filled, kWaitPollUs);
    flag.sleepers.fetch_sub(1, std::memory_order_relaxed);

    if (flag.filled.load(std::memory_order_acquire) == fill) return {};
    if (failed()) return status();
    if (stop != nullptr && stop(stop_user)) return cancelled("stopped while waiting for the drive");
    const uint64_t last = std::max(start, last_arrival_us_.load(std::memory_order_relaxed)), now = now_us();
    if (now > last && now - last > 2 * params_.deadline_us + kStuckGraceUs)
      fail({Code::kDeadline, "waited for bytes that did not come: filling " + std::to_string(fill) +
                                 " of a buffer: no read at all arrived for " + std::to_string((now - last) / 1000) +
                                 " ms"});
  }
}

void DevicePool::fail(Status status) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }
  for (const auto& worker : workers_) worker->wake();
}

void DevicePool::refused_direct(uint32_t file, int error_number) {
  const std::string line = "O_DIRECT refuses a read of " + files_[file].path() +
                           ", which went through the page cache: " + std::strerror(error_number);
  {
    const std::lock_guard lock(mutex_);
    if (said_refused_[file]) return;
    said_refused_[file] = true;
    facts_.refusals.push_back(line);
  }
  if (params_.log.write != nullptr) params_.log.write(line, params_.log.user);
}

Status DevicePool::status() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

PoolCounters DevicePool::counters() const {
  PoolCounters counters;
  for (const auto& worker : workers_) worker->add_to(&counters);
  return counters;
}

PoolFacts DevicePool::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

}  // namespace leanstream::io
