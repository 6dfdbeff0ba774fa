#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/device.h"
#include "io/read_pool.h"
#include "io/storage_model.h"

namespace leanstream::io {

class PoolWorker;

// The pool over devices, one worker for each. ReadPool::create() brings real devices, tests bring fake ones.
class DevicePool final : public ReadPool {
 public:
  // Errors: kIo when a thread cannot be started. `facts` is what the devices are.
  static Result<std::unique_ptr<ReadPool>> create(std::span<const StorageFile> files, const PoolParams& params,
                                                  std::vector<std::unique_ptr<Device>> devices, PoolFacts facts);
  ~DevicePool() override;

  bool quiesce(uint64_t timeout_us) override;
  void submit(std::span<const Read> reads) override;
  uint32_t capacity() const override { return params_.capacity; }
  void drop_before(uint32_t generation) override;
  Status wait(const ArrivalFlag& flag, uint32_t fill, bool (*stop)(void*), void* stop_user) override;
  Status status() const override;
  PoolCounters counters() const override;
  PoolFacts facts() const override;

 private:
  friend class PoolWorker;

  DevicePool(std::span<const StorageFile> files, const PoolParams& params, PoolFacts facts);

  // For workers and waiters.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void fail(Status status);  // the first one stays
  void refused_direct(uint32_t file, int error_number);

  const std::span<const StorageFile> files_;
  const PoolParams params_;
  std::unique_ptr<Throttle> throttle_;  // null: the real drive's speed

  // Requests to workers: they look at these before they issue a read.
  alignas(128) std::atomic<uint64_t> drop_{0};  // 0: none; else 2^32 + the generation
  std::atomic<uint32_t> halts_{0};              // calls of quiesce()
  std::atomic<bool> quit_{false};
  std::atomic<bool> failed_{false};  // released after failure_ is written
  alignas(128) std::atomic<uint64_t> last_arrival_us_{0};
  std::atomic<uint32_t> next_worker_{0};

  mutable std::mutex mutex_;  // of the rest, which failures and refusals touch only
  Status failure_;
  PoolFacts facts_;
  std::vector<bool> said_refused_;  // by file

  std::vector<std::unique_ptr<PoolWorker>> workers_;
};

}  // namespace leanstream::io
