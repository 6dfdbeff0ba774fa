#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/clock.h"
#include "io/device.h"
#include "io/read_pool.h"
#include "io/read_queue.h"
#include "io/storage_model.h"

namespace leanstream::io {

// What a worker decides: which read is issued next, what a result means, when a read is late, and until when an
// imitated drive holds it back. Pure bookkeeping: the caller brings the time and the results, and does what it is told.
// No allocation after construction. Single-thread.
class Dispatcher {
 public:
  struct Limits {
    uint32_t capacity;  // queued reads
    uint32_t depth;     // in flight
    uint64_t deadline_us;
  };

  // What a result meant.
  enum class Outcome {
    kArrived,   // complete; arrived() gives it out when its time has come
    kRepeat,    // next() issues the rest
    kBuffered,  // O_DIRECT refused this read: next() issues it on the buffered twin
    kGone,      // cancelled after abandon()
    kFailed,    // for good: see failure()
  };

  struct Arrival {
    Read read;
    bool buffered;  // it went through the buffered twin
  };

  // `alignments[f]`: StorageFile::alignment() of file f. `throttle` may be null; else it outlives this.
  Dispatcher(std::vector<uint32_t> alignments, const Limits& limits, Throttle* throttle);

  bool full() const { return queue_.full(); }
  bool has_room_in_flight() const { return !free_.empty(); }
  uint32_t in_flight() const { return limits_.depth - static_cast<uint32_t>(free_.size()); }  // held back ones too
  uint32_t in_kernel() const { return in_kernel_; }  // issued, and no result yet

  // Queues a read; not when full. false: it is of a dropped generation, and forgotten.
  bool add(const Read& read);
  // Both return how many reads they forgot.
  uint32_t drop_before(uint32_t generation);
  // The queue, whatever would have to be issued again, and what an imitated drive holds back.
  uint32_t abandon();

  // The next read to issue, if there is one and room for it.
  std::optional<DeviceRead> next(uint64_t now_us);

  // Takes a result, on time or late.
  Outcome finish(const DeviceResult& result, uint64_t now_us);

  // The next read that is complete and no longer held back.
  std::optional<Arrival> arrived(uint64_t now_us);

  // A read in the kernel past its deadline, or nothing. Tells of the first: what follows is the same story.
  const Read* overdue(uint64_t now_us);

  // When arrived() or overdue() may next have something, if no result comes; kNever where neither will.
  uint64_t next_event_us() const;

  // The read that finish() last called kFailed or kBuffered, and why: an errno, or 0 for the end of the file.
  struct Failure {
    Read read;
    int error_number;
  };
  const Failure& failure() const { return failure_; }

  template <typename Visit>
  void for_each_in_kernel(Visit visit) const {
    for (uint32_t id = 0; id < flights_.size(); ++id)
      if (flights_[id].state == State::kInKernel) visit(id);
  }

 private:
  enum class State : uint8_t { kFree, kAgain, kInKernel, kHeld };
  struct Flight {
    Read read;
    uint64_t issued_us = 0;  // first
    uint64_t due_us = 0;     // of the imitated drive
    uint32_t done = 0;       // bytes here for good: a multiple of the alignment in use
    State state = State::kFree;
    bool buffered = false;
  };
  struct Held {
    uint64_t due_us;
    uint32_t id;
    bool operator<(const Held& other) const { return due_us > other.due_us; }  // a heap's front is the earliest
  };

  uint32_t alignment_of(const Flight& flight) const { return flight.buffered ? 1 : alignments_[flight.read.file]; }
  DeviceRead issue(uint32_t id);
  Outcome repeat(uint32_t id, Outcome why);
  Outcome fail(uint32_t id, int error_number);
  void release(uint32_t id);

  const std::vector<uint32_t> alignments_;
  const Limits limits_;
  Throttle* const throttle_;
  ReadQueue queue_;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_, again_;  // ids
  std::vector<Held> held_;
  uint32_t in_kernel_ = 0;
  uint32_t oldest_generation_ = 0;
  bool drops_ = false;                   // drop_before() was called: oldest_generation_ counts
  bool abandoned_ = false;               // until the next add()
  uint64_t deadline_check_us_ = kNever;  // no read in the kernel is overdue before this
  Failure failure_{};
};

}  // namespace leanstream::io
