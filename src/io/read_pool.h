#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/storage_file.h"
#include "io/storage_model.h"

namespace leanstream::io {

// The io_wr flag of a piece of memory that reads fill: which filling of it is complete. `filled` is written by a pool
// worker only, and read (acquire) by whoever uses the bytes. Has its cache line to itself: workers store while others
// poll. Outlives the pool.
struct alignas(128) ArrivalFlag {
  std::atomic<uint32_t> filled{0};
  mutable std::atomic<uint32_t> sleepers{0};  // threads in ReadPool::wait() that may be asleep; theirs alone
};

// One request: bytes [offset, offset + size) of a file into memory. Under direct I/O offset, size and buffer are
// multiples of StorageFile::alignment().
struct Read {
  uint32_t file = 0;    // index into the pool's files
  uint32_t size = 0;    // bytes of room in `buffer`
  uint32_t needed = 0;  // the bytes, from the front, that must arrive; 0: all. Less where the file ends inside
  uint64_t offset = 0;
  std::byte* buffer = nullptr;  // inside the pool's arena
  uint32_t priority = 0;        // lower first; equal ones in order of submission
  uint32_t generation = 0;      // for drop_before()
  ArrivalFlag* flag = nullptr;  // on success filled becomes `fill` and sleepers are woken
  uint32_t fill = 0;
};

// Takes the pool's log lines: one for each refusal and fallback. Called by the thread in create(), and by workers.
struct PoolLog {
  void (*write)(std::string_view line, void* user) = nullptr;
  void* user = nullptr;
};

struct PoolParams {
  enum class Kind { kAuto, kRing, kThreads };
  Kind kind = Kind::kAuto;            // kAuto: the ring, or threads where it is refused (one log line says why)
  uint32_t workers = 1;               // each with a queue, a thread and a ring; for kThreads a set of readers
  uint32_t lanes = 1;                 // of each worker: threads that share out the submission
  uint32_t depth = 16;                // reads in flight per lane; for kThreads lanes * depth readers, at most 32
  uint32_t capacity = 4096;           // reads queued or in flight
  uint64_t deadline_us = 30'000'000;  // of one read, from its first issue to the kernel
  std::optional<StorageModel> model;  // a drive to imitate
  PoolLog log;
};

// Reported as it is: what the pool uses and what was refused.
struct PoolFacts {
  std::string engine;   // "io_uring" or "pread"
  bool direct = false;  // O_DIRECT on every file
  bool registered_buffers = false, registered_files = false;
  bool huge_pages = false;            // nine tenths of the arena or more
  std::vector<std::string> refusals;  // one sentence each
};

struct PoolCounters {
  uint64_t reads = 0, bytes = 0;  // that arrived; bytes as the kernel delivered them
  uint64_t dropped = 0;           // reads that were never issued
  uint64_t retried = 0;           // short reads continued, EAGAIN and EINTR repeated, EINVAL taken to the buffered twin
  uint64_t busy_us = 0;           // time with at least one read in flight, summed over workers
};

// Reads pieces of files into an arena, most important first, and raises their flags. The pool owns its threads and
// rings; files, arena and flags are borrowed and outlive it. Thread-safe, except that create() and destruction are the
// owner's. submit() and drop_before() take no lock, and make a system call only to wake a worker that sleeps.
// A failed read (EIO, end of file, past its deadline) fails the pool: status() holds the first failure, wait() returns
// it, and no further read is issued.
class ReadPool {
 public:
  // Faults the arena in. Errors: what kRing could not get; kIo when threads cannot be started; kInvalidArgument.
  static Result<std::unique_ptr<ReadPool>> create(std::span<const StorageFile> files, std::span<std::byte> arena,
                                                  const PoolParams& params);

  // Quiesces: up to the deadline, or a moment where the pool has failed. A caller that must know whether the kernel
  // still writes into the arena asks quiesce() first.
  virtual ~ReadPool() = default;

  // Drops what is queued, then waits for the reads in flight. true: no buffer is written to and no flag raised any
  // more, until the next submit(). false after `timeout_us`: the kernel may write into the arena at any later time, and
  // it must be leaked. The caller submits nothing meanwhile.
  virtual bool quiesce(uint64_t timeout_us) = 0;

  // Queues reads; more than capacity() queued or in flight fail the pool. The caller has finished with their buffers.
  virtual void submit(std::span<const Read> reads) = 0;
  virtual uint32_t capacity() const = 0;

  // Forgets queued reads of generations before `generation` (modulo 2^32) that are not yet issued; their flags are not
  // raised.
  virtual void drop_before(uint32_t generation) = 0;

  // Waits until flag.filled == fill: a bounded spin, then a futex. Errors: the pool's failure; kDeadline when nothing
  // at all arrived for twice the deadline and two seconds; kCancelled when `stop` said so (may be null; polled at least
  // every 20 ms).
  virtual Status wait(const ArrivalFlag& flag, uint32_t fill, bool (*stop)(void*), void* stop_user) = 0;

  virtual Status status() const = 0;
  virtual PoolCounters counters() const = 0;
  virtual PoolFacts facts() const = 0;
};

}  // namespace leanstream::io
