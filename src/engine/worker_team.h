#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "engine/gate.h"

namespace leanstream::engine {

class WorkerTeam;

// What one member of the team sees while a body runs.
class Worker {
 public:
  uint32_t index() const { return index_; }  // 0 is the thread that called run()
  uint32_t count() const;

  // Waits until every worker of the team is here. All workers must pass the same barriers in the same order.
  void barrier();

  // Shares out [0, total) in chunks of `grain` >= 1, whoever is free takes the next: calls body(begin, end). All
  // workers must make the same calls in the same order; there is a barrier at the end. Ends early once stop was
  // requested (the barrier is still passed), so results are complete only if !stopping(). A chunk of under 5 ms keeps
  // stopping prompt.
  template <typename Body>
  void for_each_chunk(uint32_t total, uint32_t grain, Body&& body);

  // Whether stop was requested before the last barrier. Between two barriers all workers get the same answer, so all
  // may return from the body on it.
  bool stopping() const;

  // Whether stop has been requested by now, for a wait inside a chunk: workers may get different answers.
  bool stop_requested();
  // Asks the run to stop, as its stop function does.
  void request_stop();

 private:
  friend class WorkerTeam;
  Worker(WorkerTeam& team, uint32_t index) : team_(team), index_(index) {}

  WorkerTeam& team_;
  const uint32_t index_;
};

// Threads that compute one thing together: every worker runs the same body (SPMD), meeting at barriers. Between runs
// they sleep: a bounded spin, then a futex. run() neither allocates nor locks. Thread-safe: concurrent run() calls of
// several sessions take turns in order of arrival.
class WorkerTeam {
 public:
  // Polled by worker 0 during a run; true asks the run to stop.
  using StopFunction = bool (*)(void* user);

  // What a body may use of its thread's stack: the others' are larger (Thread), the caller of run() answers for its
  // own.
  static constexpr size_t kBodyStackBytes = size_t{384} << 10;
  // kUnsupported, with both sizes, where the calling thread has less left.
  static Status check_calling_thread();

  // threads >= 1, the calling thread of run() counts as one. Errors: kIo when a thread cannot be started.
  static Result<std::unique_ptr<WorkerTeam>> create(uint32_t threads);

  // No run() may be under way.
  ~WorkerTeam();

  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  uint32_t size() const { return size_; }

  // Runs body(Worker&) on every worker and returns when all have returned. The caller is worker 0. `stop`, when not
  // null, is polled by worker 0 at the first chunk, then between chunks, at most every 5 ms. Returns false when it said
  // true: then for_each_chunk left work undone. body must not throw, nor call run() of the same team.
  template <typename Body>
  bool run(Body&& body, StopFunction stop = nullptr, void* stop_user = nullptr) {
    using Plain = std::remove_reference_t<Body>;
    const auto call = [](const void* erased, Worker& worker) {
      (*static_cast<Plain*>(const_cast<void*>(erased)))(worker);
    };
    return run_erased(call, std::addressof(body), stop, stop_user);
  }

 private:
  friend class Worker;
  using Clock = std::chrono::steady_clock;
  using ErasedBody = void (*)(const void* body, Worker& worker);

  WorkerTeam(uint32_t threads, uint32_t spin_us);

  bool run_erased(ErasedBody call, const void* body, StopFunction stop, void* stop_user);
  void worker_main(uint32_t index);
  Status start_threads();

  enum class AtBarrier { kNothing, kEndOfChunks };
  void barrier(AtBarrier action);
  bool next_chunk(uint32_t worker, uint32_t total, uint32_t grain, uint32_t& begin);
  void poll_stop();

  const uint32_t size_;
  std::vector<Thread> threads_;  // size_ - 1, of workers 1 ..

  // Written by the caller of run() (the destructor: quit_) before start_ opens, read by workers after.
  ErasedBody call_ = nullptr;
  const void* body_ = nullptr;
  bool quit_ = false;

  // Worker 0 only.
  StopFunction stop_ = nullptr;
  void* stop_user_ = nullptr;
  Clock::time_point next_poll_{};

  // Written by the last worker to arrive at a barrier (everybody else waits), read between barriers.
  bool stopping_ = false;

  Gate turn_;     // openings: runs that are over; run number n waits for n of them
  Gate start_;    // opened once per run: workers wait for their next body
  Gate barrier_;  // opened by the last worker to arrive

  // Hands out places in the line of callers. Relaxed: turn_ orders the runs.
  alignas(kCacheLineBytes) std::atomic<uint32_t> next_ticket_{0};
  // Workers that have arrived at the barrier. acq_rel: the last one acquires what the others released by arriving.
  alignas(kCacheLineBytes) std::atomic<uint32_t> arrived_{0};
  // First element not yet handed out. Relaxed: it only divides the work; reset at a barrier, which orders it.
  alignas(kCacheLineBytes) std::atomic<uint64_t> next_element_{0};
  // Set by worker 0's poll, or by a body. Relaxed: a hint to take no more chunks; what bodies rely on is stopping_.
  alignas(kCacheLineBytes) std::atomic<bool> stop_requested_{false};
};

inline uint32_t Worker::count() const {
  return team_.size_;
}
inline bool Worker::stopping() const {
  return team_.stopping_;
}
inline bool Worker::stop_requested() {
  if (index_ == 0 && team_.stop_ != nullptr) team_.poll_stop();
  return team_.stop_requested_.load(std::memory_order_relaxed);
}
inline void Worker::request_stop() {
  team_.stop_requested_.store(true, std::memory_order_relaxed);
}
inline void Worker::barrier() {
  team_.barrier(WorkerTeam::AtBarrier::kNothing);
}

template <typename Body>
void Worker::for_each_chunk(uint32_t total, uint32_t grain, Body&& body) {
  for (uint32_t begin = 0; team_.next_chunk(index_, total, grain, begin);)
    body(begin, begin + std::min(grain, total - begin));
  team_.barrier(WorkerTeam::AtBarrier::kEndOfChunks);
}

}  // namespace leanstream::engine
