#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace leanstream::engine {

class WorkerTeam;

// What one member of the team sees while a body runs.
class Worker {
 public:
  uint32_t index() const;  // 0 is the thread that called run()
  uint32_t count() const;

  // Waits until every worker of the team is here. All workers must pass the same barriers in the same order.
  void barrier();

  // Shares out [0, total) in chunks of `grain`, whoever is free takes the next: calls body(begin, end). All workers must
  // make the same calls in the same order; there is a barrier at the end. Ends early once stop was requested (the barrier
  // is still passed), so results are complete only if !stopping().
  template <typename Body>
  void for_each_chunk(uint32_t total, uint32_t grain, Body&& body);

  bool stopping() const;  // request_stop() was called during this run
};

// Threads that compute one thing together: every worker runs the same body (SPMD), meeting at barriers. Between runs
// they sleep: a bounded spin, then a futex. run() neither allocates nor locks. Thread-safe: concurrent run() calls of
// several sessions take turns in order of arrival.
class WorkerTeam {
 public:
  // threads >= 1, the calling thread of run() counts as one. Errors: kIo when a thread cannot be started.
  static Result<std::unique_ptr<WorkerTeam>> create(uint32_t threads);
  ~WorkerTeam();

  uint32_t size() const;

  // Runs body(Worker&) on every worker and returns when all have returned. The caller is worker 0. `stop`, when not null,
  // is polled by worker 0 between chunks (at most every 5 ms): returning true makes stopping() true on all.
  template <typename Body>
  void run(Body&& body, bool (*stop)(void*) = nullptr, void* stop_user = nullptr);
};

}  // namespace leanstream::engine
