#include "io/pool_worker.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/checked.h"
#include "io/clock.h"
#include "io/device_pool.h"
#include "io/futex.h"

namespace leanstream::io {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

std::vector<uint32_t> alignments_of(std::span<const StorageFile> files) {
  std::vector<uint32_t> alignments;
  for (const StorageFile& file : files) alignments.push_back(file.alignment());
  return alignments;
}

// One thread writes: no read-modify-write is needed.
void add(std::atomic<uint64_t>& counter, uint64_t amount) {
  counter.store(counter.load(kRelaxed) + amount, kRelaxed);
}

void raise_flag(const Read& read) {
  if (read.flag == nullptr) return;
  // Releases the bytes to wait()'s and compute's acquire loads. Sequentially consistent with the sleeper's count, which
  // wait() raises before it looks at `filled` a last time: one of the two sees the other.
  read.flag->filled.store(read.fill, std::memory_order_seq_cst);
  if (read.flag->sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(read.flag->filled);
}

// So that buffered reads do not count against a memory limit for longer than they must.
void drop_page_cache(const StorageFile& file, const Read& read) {
  constexpr uint64_t kPageBytes = 4096;  // larger pages at the ends stay: harmless
  const uint64_t start = read.offset & ~(kPageBytes - 1);
  const uint64_t end = align_up(read.offset + read.size, kPageBytes);
  ::posix_fadvise(file.buffered_descriptor(), static_cast<off_t>(start), static_cast<off_t>(end - start),
                  POSIX_FADV_DONTNEED);
}

std::string name_read(const StorageFile& file, const Read& read) {
  return "cannot read " + file.path() + " at offset " + std::to_string(read.offset) + " (" +
         std::to_string(read.needed == 0 ? read.size : read.needed) + " bytes)";
}

}  // namespace

PoolWorker::PoolWorker(DevicePool* pool, std::unique_ptr<Device> device)
    : pool_(*pool),
      device_(std::move(device)),
      dispatcher_(alignments_of(pool->files_), {pool->params_.capacity, device_->depth(), pool->params_.deadline_us},
                  pool->throttle_.get()),
      inbox_(pool->params_.capacity) {
  results_.reserve(device_->depth());
}

PoolWorker::~PoolWorker() = default;

Status PoolWorker::start(uint32_t index) {
  Result<Thread> thread = Thread::start("io-worker-" + std::to_string(index), [this] { run(); });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  return {};
}

void PoolWorker::stop() {
  thread_.join();
}

void PoolWorker::wake_if_asleep() {
  // Sequentially consistent after the inbox's cell: see sleep_and_collect().
  if (asleep_.load(std::memory_order_seq_cst) != 0 && asleep_.exchange(0, kRelaxed) != 0) device_->wake();
}

bool PoolWorker::halted(uint32_t halts) const {
  return halted_.load(std::memory_order_acquire) == halts && in_flight_.load(std::memory_order_acquire) == 0;
}

void PoolWorker::add_to(PoolCounters* counters) const {
  counters->reads += reads_.load(kRelaxed);
  counters->bytes += bytes_.load(kRelaxed);
  counters->dropped += dropped_.load(kRelaxed);
  counters->retried += retried_.load(kRelaxed);
  const uint64_t since = busy_since_us_.load(kRelaxed), now = now_us();
  counters->busy_us += busy_us_.load(kRelaxed) + (since == 0 || since > now ? 0 : now - since);
}

void PoolWorker::run() {
  // An imitated drive's completions are timed to the microsecond, not to the default 50.
  if (pool_.throttle_ != nullptr) ::prctl(PR_SET_TIMERSLACK, 1000UL);
  Status status = device_->start();
  while (status.ok() && !pool_.quit_.load(std::memory_order_acquire)) {
    heed_requests();
    take_inbox();
    issue_reads();
    publish();
    const uint64_t now = now_us();
    check_deadlines(now);
    status = sleep_and_collect(now);
    take_results();
    deliver(now_us());
  }
  if (status.ok()) return;
  pool_.fail(std::move(status));
  // A broken device may hold reads for ever, and says no more: halted() stays false while it does.
  abandon();
  publish();
}

void PoolWorker::heed_requests() {
  const uint64_t drop = pool_.drop_.load(std::memory_order_acquire);
  if (drop != heeded_drop_) {
    heeded_drop_ = drop;
    add(dropped_, dispatcher_.drop_before(static_cast<uint32_t>(drop)));
  }
  const uint32_t halts = pool_.halts_.load(std::memory_order_acquire);
  const bool give_up = pool_.failed() && !gave_up_;
  if (halts == heeded_halts_ && !give_up) return;
  heeded_halts_ = halts;
  gave_up_ = gave_up_ || give_up;
  abandon();
  dispatcher_.for_each_in_kernel([this](uint32_t id) { device_->cancel(id); });
}

void PoolWorker::abandon() {
  for (Read read; inbox_.try_pop(&read);) add(dropped_, 1);
  add(dropped_, dispatcher_.abandon());
}

void PoolWorker::take_inbox() {
  Read read;
  while (!dispatcher_.full() && inbox_.try_pop(&read))
    if (gave_up_ || !dispatcher_.add(read)) add(dropped_, 1);
}

void PoolWorker::issue_reads() {
  const uint64_t now = now_us();
  while (const std::optional<DeviceRead> read = dispatcher_.next(now)) device_->issue(*read);
  if (dispatcher_.in_flight() != 0 && busy_since_us_.load(kRelaxed) == 0) busy_since_us_.store(now, kRelaxed);
}

void PoolWorker::publish() {
  in_flight_.store(dispatcher_.in_flight(), std::memory_order_release);
  // After the count: who sees this halt heeded sees what it left in flight.
  halted_.store(heeded_halts_, std::memory_order_release);
}

Status PoolWorker::sleep_and_collect(uint64_t now_us) {
  const uint64_t event = dispatcher_.next_event_us();
  uint64_t timeout = event == kNever ? kNever : event - std::min(event, now_us);
  // While everything that fits is in flight, new reads can wait for the next result, and their submitters are spared
  // the wake-up. Else: announce, then look once more. A submitter fills a cell, then looks for the announcement; all
  // four steps are sequentially consistent, so one of the two sees the other.
  if (dispatcher_.has_room_in_flight()) {
    asleep_.store(1, std::memory_order_seq_cst);
    if (!inbox_.empty()) timeout = 0;
  }
  results_.clear();
  Status status = device_->collect(timeout, &results_);
  asleep_.store(0, kRelaxed);
  return status;
}

void PoolWorker::take_results() {
  const uint64_t now = now_us();
  for (const DeviceResult& result : results_) {
    if (result.result > 0) add(bytes_, static_cast<uint64_t>(result.result));
    switch (dispatcher_.finish(result, now)) {
      case Dispatcher::Outcome::kArrived:
        break;
      case Dispatcher::Outcome::kRepeat:
        add(retried_, 1);
        break;
      case Dispatcher::Outcome::kBuffered:
        add(retried_, 1);
        pool_.refused_direct(dispatcher_.failure().read.file, dispatcher_.failure().error_number);
        break;
      case Dispatcher::Outcome::kGone:
        add(dropped_, 1);
        break;
      case Dispatcher::Outcome::kFailed:
        fail_read(dispatcher_.failure().read, dispatcher_.failure().error_number);
    }
  }
}

void PoolWorker::deliver(uint64_t now_us) {
  while (const std::optional<Dispatcher::Arrival> arrival = dispatcher_.arrived(now_us)) {
    const StorageFile& file = pool_.files_[arrival->read.file];
    if (arrival->buffered || !file.direct()) drop_page_cache(file, arrival->read);
    add(reads_, 1);
    pool_.last_arrival_us_.store(now_us, kRelaxed);
    raise_flag(arrival->read);
  }
  const uint64_t since = busy_since_us_.load(kRelaxed);
  if (since == 0 || dispatcher_.in_flight() != 0) return;
  add(busy_us_, now_us - since);
  busy_since_us_.store(0, kRelaxed);
}

void PoolWorker::check_deadlines(uint64_t now_us) {
  const Read* late = dispatcher_.overdue(now_us);
  if (late == nullptr) return;
  pool_.fail({Code::kDeadline, name_read(pool_.files_[late->file], *late) + ": the drive did not answer within " +
                                   std::to_string(pool_.params_.deadline_us / 1000) + " ms"});
}

void PoolWorker::fail_read(const Read& read, int error_number) {
  const StorageFile& file = pool_.files_[read.file];
  if (error_number != 0) {
    pool_.fail(io_error(name_read(file, read), error_number));
  } else {
    pool_.fail({Code::kIo, name_read(file, read) + ": the file ends before; it had " +
                               std::to_string(file.size_bytes()) + " bytes when it was opened"});
  }
}

}  // namespace leanstream::io
