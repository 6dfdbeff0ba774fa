#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/storage_file.h"

namespace leanstream::io {

// The io_wr flag of a piece of memory that reads fill: which filling of it is complete. Written by a pool worker only
// (release), read by whoever uses the bytes (acquire). Sits on its own cache line: workers store while others poll.
struct alignas(128) ArrivalFlag {
  std::atomic<uint32_t> filled{0};
};

// One request: bytes [offset, offset + size) of a file into memory. Under direct I/O offset, size and buffer are
// multiples of StorageFile::alignment().
struct Read {
  uint32_t file = 0;              // index into the pool's files
  uint32_t size = 0;
  uint64_t offset = 0;
  std::byte* buffer = nullptr;    // inside the pool's arena
  uint32_t priority = 0;          // lower first; equal ones in order of submission
  uint32_t generation = 0;        // for drop_before()
  ArrivalFlag* flag = nullptr;    // on success: flag->filled.store(fill, release), then sleepers are woken
  uint32_t fill = 0;
};

struct PoolParams {
  enum class Kind { kAuto, kRing, kThreads };
  Kind kind = Kind::kAuto;        // kAuto: the ring, or threads where it is refused (one log line says why)
  uint32_t workers = 1;           // rings, each with a thread; or, for kThreads, readers = workers * depth, at most 32
  uint32_t lanes = 1;             // of each worker
  uint32_t depth = 16;            // reads in flight per lane
  uint64_t deadline_us = 30'000'000;  // of one read, from its submission to the kernel
};

// Reported as it is: what the pool uses and what was refused.
struct PoolFacts {
  std::string engine;             // "io_uring", "pread"
  bool direct = false;            // O_DIRECT on every file
  bool registered_buffers = false, registered_files = false, huge_pages = false;
  std::vector<std::string> refusals;  // one sentence each
};

struct PoolCounters {
  uint64_t reads = 0, bytes = 0;
  uint64_t dropped = 0;           // stale reads that were never issued
  uint64_t retried = 0;           // short reads continued, EAGAIN and EINTR repeated
  uint64_t busy_us = 0;           // time with at least one read in flight
};

// Reads pieces of files into an arena, most important first, and raises their flags. The pool owns its threads and
// rings; files and arena are borrowed. submit() and drop_before() are thread-safe and lock-free.
// A failed read (EIO, end of file, past its deadline) fails the pool: status() holds the first failure, every flag
// waiter sees it through wait(), and no further read is issued. A stalled read's buffer stays untouched by us until the
// kernel is done with it: see ~ReadPool.
class ReadPool {
 public:
  // `log` gets one line for each refusal and fallback; may be empty.
  static Result<std::unique_ptr<ReadPool>> create(std::span<const StorageFile> files, std::span<std::byte> arena,
                                                  const PoolParams& params);

  // Waits for reads in flight, up to the deadline; the kernel may still write into the arena after that, so
  // quiesced() tells whether the arena may be freed. When it is not, the caller must leak it.
  virtual ~ReadPool() = default;
  virtual bool quiesce(uint64_t timeout_us) = 0;

  // Queues reads. At most `capacity()` may be queued or in flight.
  virtual void submit(std::span<const Read> reads) = 0;
  virtual uint32_t capacity() const = 0;

  // Forgets queued reads of generations before `generation` that are not yet issued; their flags are not raised.
  virtual void drop_before(uint32_t generation) = 0;

  // Waits until flag->filled == fill: a bounded spin, then a futex. Errors: the pool's failure; kDeadline naming the
  // read that was waited for; kCancelled when `stop` said so (polled at least every 20 ms).
  virtual Status wait(const ArrivalFlag& flag, uint32_t fill, bool (*stop)(void*), void* stop_user) = 0;

  virtual Status status() const = 0;
  virtual PoolCounters counters() const = 0;
  virtual const PoolFacts& facts() const = 0;
};

}  // namespace leanstream::io
