#include "engine/worker_team.h"

#include <sched.h>

#include <string>

#include "base/units.h"

namespace leanstream::engine {
namespace {

// Barriers of a decode step are a few microseconds apart; a wake-up from a futex costs tens (bench/team_bench.cpp).
constexpr uint32_t kSpinUs = 50;
constexpr std::chrono::milliseconds kStopPollInterval{5};

uint32_t usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace

Result<std::unique_ptr<WorkerTeam>> WorkerTeam::create(uint32_t threads) {
  if (threads == 0) return invalid_argument("cannot start a worker team: 0 threads");
  // With more threads than CPUs, a spinning worker may hold the CPU that the one it waits for needs.
  const uint32_t spin_us = threads <= usable_cpus() ? kSpinUs : 0;
  std::unique_ptr<WorkerTeam> team(new WorkerTeam(threads, spin_us));
  if (Status status = team->start_threads(); !status.ok()) return status;
  return team;
}

Status WorkerTeam::check_calling_thread() {
  const size_t free = free_stack_bytes();
  if (free >= kBodyStackBytes) return {};
  return unsupported("cannot compute on this thread: its stack has " + format_bytes(free) + " left, computing takes " +
                     format_bytes(kBodyStackBytes) + " (of the main thread, `ulimit -s` sets it)");
}

WorkerTeam::WorkerTeam(uint32_t threads, uint32_t spin_us) : size_(threads), start_(spin_us), barrier_(spin_us) {}

Status WorkerTeam::start_threads() {
  threads_.reserve(size_ - 1);
  for (uint32_t index = 1; index < size_; ++index) {
    Result<Thread> thread = Thread::start("leanstream-" + std::to_string(index), [this, index] { worker_main(index); });
    if (!thread.ok()) return thread.status().with_context("cannot have " + std::to_string(size_) + " compute threads");
    threads_.push_back(*std::move(thread));
  }
  return {};
}

WorkerTeam::~WorkerTeam() {
  quit_ = true;
  start_.open();
  threads_.clear();  // joins
}

void WorkerTeam::worker_main(uint32_t index) {
  Worker worker(*this, index);
  // A run cannot begin before the previous one's last barrier, which this thread passes: it misses no opening.
  for (uint32_t runs_seen = 0;; runs_seen = (runs_seen + 1) & Gate::kCountMask) {
    start_.wait(runs_seen);
    if (quit_) return;
    call_(body_, worker);
    barrier(AtBarrier::kNothing);
  }
}

bool WorkerTeam::run_erased(ErasedBody call, const void* body, StopFunction stop, void* stop_user) {
  const uint32_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed) & Gate::kCountMask;
  for (uint32_t over = turn_.openings(); over != ticket; over = turn_.openings()) turn_.wait(over);

  call_ = call;
  body_ = body;
  stop_ = stop;
  stop_user_ = stop_user;
  next_poll_ = {};
  stopping_ = false;
  stop_requested_.store(false, std::memory_order_relaxed);
  start_.open();

  Worker worker(*this, 0);
  call(body, worker);
  barrier(AtBarrier::kNothing);

  const bool complete = !stopping_;
  turn_.open();
  return complete;
}

void WorkerTeam::barrier(AtBarrier action) {
  // Cannot move on before this worker has arrived.
  const uint32_t seen = barrier_.openings();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) {
    barrier_.wait(seen);
    return;
  }
  // Everybody else waits: what follows is exclusive, and published by open().
  arrived_.store(0, std::memory_order_relaxed);
  if (action == AtBarrier::kEndOfChunks) next_element_.store(0, std::memory_order_relaxed);
  stopping_ = stop_requested_.load(std::memory_order_relaxed);
  barrier_.open();
}

bool WorkerTeam::next_chunk(uint32_t worker, uint32_t total, uint32_t grain, uint32_t& begin) {
  if (worker == 0 && stop_ != nullptr) poll_stop();
  if (stop_requested_.load(std::memory_order_relaxed)) return false;
  const uint64_t element = next_element_.fetch_add(grain, std::memory_order_relaxed);
  if (element >= total) return false;
  begin = static_cast<uint32_t>(element);
  return true;
}

void WorkerTeam::poll_stop() {
  const Clock::time_point now = Clock::now();
  if (now < next_poll_) return;
  next_poll_ = now + kStopPollInterval;
  if (stop_(stop_user_)) stop_requested_.store(true, std::memory_order_relaxed);
}

}  // namespace leanstream::engine
