#include "io/thread_device.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "io/bounded_queue.h"
#include "io/clock.h"
#include "io/futex.h"

namespace leanstream::io {
namespace {

// What the worker and its readers share. Readers hold it alive, so that one that hangs in the kernel may outlive the
// device.
struct Shared {
  Shared(std::span<const int> fds, uint32_t readers)
      : descriptors(fds.begin(), fds.end()), wanted(readers), done(readers) {}

  const std::vector<int> descriptors;
  BoundedQueue<DeviceRead> wanted;
  BoundedQueue<DeviceResult> done;
  alignas(128) std::atomic<uint32_t> tickets{0};  // reads in `wanted` that no reader has claimed
  std::atomic<uint32_t> idle_readers{0};          // that may sleep on `tickets`
  alignas(128) std::atomic<uint32_t> bell{0};     // counts results and wake-ups
  std::atomic<uint32_t> worker_sleeps{0};
  std::atomic<bool> quit{false};

  void ring_bell() {
    // Both sequentially consistent, as in collect(): either the worker sees the new count, or this sees it asleep.
    bell.fetch_add(1, std::memory_order_seq_cst);
    if (worker_sleeps.load(std::memory_order_seq_cst) != 0) futex_wake(bell, 1);
  }

  void offer(const DeviceRead& read) {
    // No more reads are out than there are cells, but a reader that was interrupted while it took one still blocks its
    // cell. It has no system call to make there, and needs a CPU only.
    while (!wanted.try_push(read)) std::this_thread::yield();
    tickets.fetch_add(1, std::memory_order_seq_cst);
    if (idle_readers.load(std::memory_order_seq_cst) != 0) futex_wake(tickets, 1);
  }

  // false: quit.
  bool claim() {
    for (;;) {
      uint32_t open = tickets.load(std::memory_order_acquire);
      while (open > 0 && !tickets.compare_exchange_weak(open, open - 1, std::memory_order_acquire)) {
      }
      if (quit.load(std::memory_order_acquire)) return false;
      if (open > 0) return true;
      idle_readers.fetch_add(1, std::memory_order_seq_cst);
      if (tickets.load(std::memory_order_seq_cst) == 0) futex_wait(tickets, 0, kNever);
      idle_readers.fetch_sub(1, std::memory_order_relaxed);
    }
  }
};

void reader_main(const std::shared_ptr<Shared>& shared) {
  while (shared->claim()) {
    DeviceRead read;
    while (!shared->wanted.try_pop(&read)) std::this_thread::yield();  // the ticket stands for a read that is there
    const ssize_t n =
        ::pread(shared->descriptors[read.descriptor], read.buffer, read.size, static_cast<off_t>(read.offset));
    const DeviceResult result{read.id, n < 0 ? -errno : static_cast<int32_t>(n)};
    while (!shared->done.try_push(result)) std::this_thread::yield();
    shared->ring_bell();
  }
}

class ThreadDevice final : public Device {
 public:
  ThreadDevice(std::span<const int> descriptors, uint32_t readers)
      : shared_(std::make_shared<Shared>(descriptors, readers)), readers_(readers) {}

  ~ThreadDevice() override {
    shared_->quit.store(true, std::memory_order_release);
    shared_->tickets.fetch_add(static_cast<uint32_t>(threads_.size()), std::memory_order_seq_cst);
    futex_wake_all(shared_->tickets);
    std::vector<DeviceResult> late;
    take_results(&late);
    for (Thread& thread : threads_) {
      // With a read outstanding a reader may hang in the kernel for good.
      if (outstanding_ == 0) {
        thread.join();
      } else {
        thread.detach();
      }
    }
  }

  Status start_readers() {
    for (uint32_t i = 0; i < readers_; ++i) {
      Result<Thread> thread =
          Thread::start("io-reader-" + std::to_string(i), [shared = shared_] { reader_main(shared); });
      if (!thread.ok()) return thread.status();
      threads_.push_back(*std::move(thread));
    }
    return {};
  }

  uint32_t depth() const override { return readers_; }

  void issue(const DeviceRead& read) override {
    ++outstanding_;
    shared_->offer(read);
  }

  Status collect(uint64_t timeout_us, std::vector<DeviceResult>* results) override {
    if (take_results(results) || timeout_us == 0) return {};
    shared_->worker_sleeps.store(1, std::memory_order_seq_cst);
    if (shared_->bell.load(std::memory_order_seq_cst) == seen_) futex_wait(shared_->bell, seen_, timeout_us);
    shared_->worker_sleeps.store(0, std::memory_order_relaxed);
    take_results(results);
    return {};
  }

  void cancel(uint32_t) override {}  // pread() cannot be called off
  void wake() override { shared_->ring_bell(); }

 private:
  // true: the bell has rung since the last look.
  bool take_results(std::vector<DeviceResult>* results) {
    const uint32_t bell = shared_->bell.load(std::memory_order_acquire);
    const bool rung = bell != seen_;
    seen_ = bell;
    for (DeviceResult result; shared_->done.try_pop(&result);) {
      results->push_back(result);
      --outstanding_;
    }
    return rung;
  }

  const std::shared_ptr<Shared> shared_;
  const uint32_t readers_;
  std::vector<Thread> threads_;
  uint32_t outstanding_ = 0;
  uint32_t seen_ = 0;  // the bell's count at the last look
};

}  // namespace

Result<std::unique_ptr<Device>> create_thread_device(std::span<const int> descriptors, uint32_t readers) {
  auto device = std::make_unique<ThreadDevice>(descriptors, readers);
  if (Status status = device->start_readers(); !status.ok()) return status;
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace leanstream::io
