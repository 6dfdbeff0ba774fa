#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread.h"
#include "io/bounded_queue.h"
#include "io/device.h"
#include "io/dispatcher.h"
#include "io/read_pool.h"

namespace leanstream::io {

class DevicePool;

// A thread that moves reads from its inbox through a dispatcher to a device, and raises their flags. The dispatcher
// decides; the worker asks the clock, calls the device and talks to other threads.
class PoolWorker {
 public:
  // `pool` outlives the worker.
  PoolWorker(DevicePool* pool, std::unique_ptr<Device> device);
  ~PoolWorker();

  Status start(uint32_t index);
  void stop();  // joins; the pool has set its quit flag

  // From any thread.
  bool offer(const Read& read) { return inbox_.try_push(read); }  // false: full
  void wake_if_asleep();
  void wake() { device_->wake(); }
  bool halted(uint32_t halts) const;  // it has heeded this many halts, and has nothing in flight
  void add_to(PoolCounters* counters) const;

 private:
  void run();
  void heed_requests();
  void take_inbox();
  void issue_reads();
  void deliver(uint64_t now_us);
  void take_results();
  void check_deadlines(uint64_t now_us);
  Status sleep_and_collect(uint64_t now_us);
  void fail_read(const Read& read, int error_number);
  void abandon();
  void publish();

  DevicePool& pool_;
  std::unique_ptr<Device> device_;
  Dispatcher dispatcher_;
  BoundedQueue<Read> inbox_;
  std::vector<DeviceResult> results_;
  Thread thread_;

  uint64_t heeded_drop_ = 0;
  uint32_t heeded_halts_ = 0;
  bool gave_up_ = false;  // heeded the pool's failure

  alignas(128) std::atomic<uint32_t> asleep_{0};  // it waits, and a new read would be of use
  // What other threads may know; this thread writes.
  alignas(128) std::atomic<uint32_t> in_flight_{0};
  std::atomic<uint32_t> halted_{0};
  std::atomic<uint64_t> reads_{0}, bytes_{0}, dropped_{0}, retried_{0}, busy_us_{0};
  std::atomic<uint64_t> busy_since_us_{0};  // 0: nothing in flight
};

}  // namespace leanstream::io
