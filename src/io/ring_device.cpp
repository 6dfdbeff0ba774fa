#include "io/ring_device.h"

#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "io/clock.h"
#include "io/lane_group.h"

namespace leanstream::io {
namespace {

// Kernel ABI (5.19, 6.0), newer than the liburing of Ubuntu 22.04. The first spares an interrupt per completion: the
// worker enters the kernel soon enough by itself. The second is a promise that the kernel may use.
constexpr unsigned kSetupCoopTaskrun = 1U << 8;
constexpr unsigned kSetupSingleIssuer = 1U << 12;

constexpr size_t kMaxRegisteredBytes = size_t{1} << 30;  // of one buffer: the kernel's limit
constexpr size_t kTrialBytes = 4096;

// What a completion is of: reads carry their id, the rest is told apart by bit 32 and up. liburing's own timeouts on
// kernels before 5.11 use ~0 and are none of these.
constexpr uint64_t kWakeTag = uint64_t{1} << 32;
constexpr uint64_t kCancelTag = uint64_t{2} << 32;

// A ring and the eventfd that it signals completions to, if any. Owns the ring.
class Ring {
 public:
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (open_) io_uring_queue_exit(&ring_);
  }

  // 0 or -errno. `flags` are dropped where the kernel does not know them. The ring starts disabled: the thread that
  // enables it is the one that submits.
  int open(unsigned entries, unsigned flags) {
    int error = -EINVAL;
    for (const unsigned known : {flags, flags & ~kSetupSingleIssuer, 0U}) {
      error = io_uring_queue_init(entries, &ring_, known | IORING_SETUP_R_DISABLED);
      if (error != -EINVAL) break;
    }
    open_ = error == 0;
    return error;
  }

  // On the thread that is to submit. 0 or -errno. By hand: liburing's shared libraries before 2.4 forget to export it.
  int enable() {
    const long error = syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
    return error < 0 ? -errno : 0;
  }

  io_uring* get() { return &ring_; }

  // A free entry; submits first where the queue is full. null: the kernel takes nothing now.
  io_uring_sqe* entry() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr && io_uring_submit(&ring_) > 0) sqe = io_uring_get_sqe(&ring_);
    return sqe;
  }

 private:
  io_uring ring_{};
  bool open_ = false;
};

struct Lane {
  Ring ring;
  uint32_t in_flight = 0;
  bool unsubmitted = false;
  int error = 0;  // of the last submission; written by the lane, read by lane 0 after the round
  bool enabled = false;
};

class RingDevice final : public Device {
 public:
  RingDevice(std::span<const int> descriptors, std::span<std::byte> arena, uint32_t lanes, uint32_t depth_per_lane)
      : descriptors_(descriptors.begin(), descriptors.end()),
        arena_(arena),
        depth_per_lane_(depth_per_lane),
        lanes_(lanes),
        lane_of_(size_t{lanes} * depth_per_lane) {}

  ~RingDevice() override {
    if (wake_fd_ >= 0) ::close(wake_fd_);
  }

  Status open(RingFacts* facts);

  uint32_t depth() const override { return static_cast<uint32_t>(lane_of_.size()); }
  Status start() override;
  void issue(const DeviceRead& read) override;
  Status collect(uint64_t timeout_us, std::vector<DeviceResult>* results) override;
  void cancel(uint32_t id) override;
  void wake() override;

 private:
  void register_with(io_uring* ring, RingFacts* facts);
  Status trial_read();
  void arm_wake();
  void submit_lane(uint32_t lane);
  Status submit();
  bool reap(std::vector<DeviceResult>* results);
  Status wait(uint64_t timeout_us);
  void signal_siblings(bool on);

  const std::vector<int> descriptors_;
  const std::span<std::byte> arena_;
  const uint32_t depth_per_lane_;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> lane_of_;  // by id
  bool registered_buffers_ = false, registered_files_ = false;
  int wake_fd_ = -1;         // an eventfd: wake() and siblings' completions write it, lane 0's ring reads it
  uint64_t wake_count_ = 0;  // where that read puts its number
  bool wake_armed_ = false;
  LaneGroup group_;  // last: its threads use the rest
};

std::string because(int error_number) {
  return std::string(": ") + std::strerror(error_number);
}

Status RingDevice::open(RingFacts* facts) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) return io_error("cannot create an eventfd", errno);
  for (Lane& lane : lanes_) {
    // A sibling sleeps on its futex, not in the ring: without COOP_TASKRUN completions interrupt it there.
    const unsigned flags = &lane == &lanes_.front() ? kSetupCoopTaskrun | kSetupSingleIssuer : kSetupSingleIssuer;
    // Room for the reads, the wake-up and some cancellations; the kernel rounds up to a power of two.
    const int error = lane.ring.open(depth_per_lane_ + 4, flags);
    if (error < 0) return unsupported("io_uring is refused" + because(-error));
    register_with(lane.ring.get(), facts);
    if (&lane != &lanes_.front()) {
      const int refused = io_uring_register_eventfd(lane.ring.get(), wake_fd_);
      if (refused < 0) return unsupported("io_uring is refused an eventfd for a lane" + because(-refused));
      io_uring_cq_eventfd_toggle(lane.ring.get(), false);
    }
  }
  registered_buffers_ = facts->registered_buffers;
  registered_files_ = facts->registered_files;
  return trial_read();
}

// Registers descriptors and arena with one ring; what one ring is refused, no ring uses.
void RingDevice::register_with(io_uring* ring, RingFacts* facts) {
  if (facts->registered_files) {
    const int error = io_uring_register_files(ring, descriptors_.data(), static_cast<unsigned>(descriptors_.size()));
    if (error < 0) {
      facts->registered_files = false;
      facts->refusals.push_back("io_uring is refused registered files" + because(-error));
    }
  }
  if (facts->registered_buffers) {
    std::vector<iovec> pieces;
    for (size_t at = 0; at < arena_.size(); at += kMaxRegisteredBytes)
      pieces.push_back({arena_.data() + at, std::min(arena_.size() - at, kMaxRegisteredBytes)});
    const int error = io_uring_register_buffers(ring, pieces.data(), static_cast<unsigned>(pieces.size()));
    if (error < 0) {
      facts->registered_buffers = false;
      facts->refusals.push_back("io_uring is refused registered buffers (is RLIMIT_MEMLOCK too small?)" +
                                because(-error));
    }
  }
}

// A read through a ring of its own, waited for: finds system calls that are forbidden one by one, and kernels without
// the operation.
Status RingDevice::trial_read() {
  if (descriptors_.empty()) return {};
  Ring ring;
  int error = ring.open(1, 0);
  if (error == 0) error = ring.enable();
  if (error < 0) return unsupported("io_uring is refused" + because(-error));
  std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kTrialBytes, kTrialBytes), &std::free);
  io_uring_sqe* sqe = ring.entry();
  io_uring_prep_read(sqe, descriptors_[0], block.get(), kTrialBytes, 0);
  io_uring_cqe* cqe = nullptr;
  __kernel_timespec timeout{5, 0};
  error = io_uring_submit(ring.get());
  if (error >= 0) {
    error = io_uring_wait_cqes(ring.get(), &cqe, 1, &timeout, nullptr);
    if (error < 0) block.release();  // the kernel may still write to it
  }
  if (error < 0) return unsupported("io_uring is refused a trial read" + because(-error));
  // Errors of the drive are the reads' to report.
  if (cqe->res == -EINVAL || cqe->res == -EOPNOTSUPP || cqe->res == -EPERM || cqe->res == -EACCES)
    return unsupported("io_uring failed a trial read" + because(-cqe->res));
  return {};
}

Status RingDevice::start() {
  const int error = lanes_[0].ring.enable();
  if (error < 0) return io_error("cannot enable an io_uring", -error);
  lanes_[0].enabled = true;
  arm_wake();
  if (lanes_.size() == 1) return {};
  return group_.start(static_cast<uint32_t>(lanes_.size()), [this](uint32_t lane) { submit_lane(lane); });
}

void RingDevice::arm_wake() {
  if (wake_armed_) return;
  io_uring_sqe* sqe = lanes_[0].ring.entry();
  if (sqe == nullptr) return;  // the next collect() tries again
  io_uring_prep_read(sqe, wake_fd_, &wake_count_, sizeof wake_count_, 0);
  sqe->user_data = kWakeTag;
  wake_armed_ = true;
  lanes_[0].unsubmitted = true;
}

void RingDevice::issue(const DeviceRead& read) {
  const auto least = std::min_element(lanes_.begin(), lanes_.end(),
                                      [](const Lane& a, const Lane& b) { return a.in_flight < b.in_flight; });
  io_uring_sqe* sqe = least->ring.entry();
  assert(sqe != nullptr);  // a lane has more entries than reads
  ++least->in_flight;
  least->unsubmitted = true;
  lane_of_[read.id] = static_cast<uint32_t>(least - lanes_.begin());

  const int fd = registered_files_ ? static_cast<int>(read.descriptor) : descriptors_[read.descriptor];
  const auto start = static_cast<size_t>(read.buffer - arena_.data());
  const size_t piece = start / kMaxRegisteredBytes;
  // A read across two registered pieces is a plain one.
  if (registered_buffers_ && piece == (start + read.size - 1) / kMaxRegisteredBytes) {
    io_uring_prep_read_fixed(sqe, fd, read.buffer, read.size, read.offset, static_cast<int>(piece));
  } else {
    io_uring_prep_read(sqe, fd, read.buffer, read.size, read.offset);
  }
  if (registered_files_) sqe->flags |= IOSQE_FIXED_FILE;
  sqe->user_data = read.id;
}

void RingDevice::cancel(uint32_t id) {
  Lane& lane = lanes_[lane_of_[id]];
  // Leaves room for the reads that issue() may yet bring, and the wake-up.
  if (io_uring_sq_space_left(lane.ring.get()) <= depth_per_lane_ - lane.in_flight + 1) return;
  io_uring_sqe* sqe = io_uring_get_sqe(lane.ring.get());
  io_uring_prep_cancel(sqe, reinterpret_cast<void*>(uintptr_t{id}), 0);
  sqe->user_data = kCancelTag;
  lane.unsubmitted = true;
}

void RingDevice::wake() {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the worker wakes all the same.
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

// On the lane's own thread.
void RingDevice::submit_lane(uint32_t index) {
  Lane& lane = lanes_[index];
  lane.error = 0;
  if (!lane.unsubmitted) return;
  if (!lane.enabled) {
    lane.error = lane.ring.enable();
    if (lane.error < 0) return;
    lane.enabled = true;
  }
  const int submitted = io_uring_submit(lane.ring.get());
  // The kernel is short of something for now: what is left goes with the next round.
  const bool later = submitted == -EAGAIN || submitted == -EBUSY || submitted == -EINTR;
  if (submitted < 0 && !later) lane.error = submitted;
  lane.unsubmitted = io_uring_sq_ready(lane.ring.get()) != 0;
}

Status RingDevice::submit() {
  const bool siblings =
      std::any_of(lanes_.begin() + 1, lanes_.end(), [](const Lane& lane) { return lane.unsubmitted; });
  if (siblings) {
    group_.run();
  } else {
    submit_lane(0);
  }
  for (const Lane& lane : lanes_)
    if (lane.error < 0) return io_error("cannot submit reads to io_uring", -lane.error);
  return {};
}

// Takes what has completed. true: there was a result or a wake-up.
bool RingDevice::reap(std::vector<DeviceResult>* results) {
  bool any = false;
  for (Lane& lane : lanes_) {
    io_uring_cqe* cqe;
    unsigned head, seen = 0;
    io_uring_for_each_cqe(lane.ring.get(), head, cqe) {
      ++seen;
      if (cqe->user_data < lane_of_.size()) {
        results->push_back({static_cast<uint32_t>(cqe->user_data), cqe->res});
        --lane.in_flight;
        any = true;
      } else if (cqe->user_data == kWakeTag) {
        wake_armed_ = false;
        any = true;
      }
    }
    io_uring_cq_advance(lane.ring.get(), seen);
  }
  return any;
}

Status RingDevice::collect(uint64_t timeout_us, std::vector<DeviceResult>* results) {
  arm_wake();
  if (Status status = submit(); !status.ok()) return status;
  if (reap(results) || timeout_us == 0) return {};
  signal_siblings(true);
  // A sibling's completion between the look above and the switch would go unsignalled.
  Status status = reap(results) ? Status() : wait(timeout_us);
  signal_siblings(false);
  reap(results);
  return status;
}

Status RingDevice::wait(uint64_t timeout_us) {
  // What the kernel could not take now is tried again soon.
  const bool retry = std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.unsubmitted; });
  if (retry) timeout_us = std::min<uint64_t>(timeout_us, 1000);
  __kernel_timespec timeout{static_cast<int64_t>(timeout_us / 1'000'000),
                            static_cast<long long>(timeout_us % 1'000'000 * 1000)};
  io_uring_cqe* cqe = nullptr;
  const int error =
      io_uring_wait_cqes(lanes_[0].ring.get(), &cqe, 1, timeout_us == kNever ? nullptr : &timeout, nullptr);
  if (error < 0 && error != -ETIME && error != -EINTR && error != -EAGAIN)
    return io_error("cannot wait for io_uring", -error);
  return {};
}

// Whether siblings' completions write the eventfd: only while lane 0 sleeps.
void RingDevice::signal_siblings(bool on) {
  for (size_t lane = 1; lane < lanes_.size(); ++lane) io_uring_cq_eventfd_toggle(lanes_[lane].ring.get(), on);
}

}  // namespace

Result<std::unique_ptr<Device>> create_ring_device(std::span<const int> descriptors, std::span<std::byte> arena,
                                                   uint32_t lanes, uint32_t depth_per_lane, RingFacts* facts) {
  auto device = std::make_unique<RingDevice>(descriptors, arena, lanes, depth_per_lane);
  if (Status status = device->open(facts); !status.ok()) return status;
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace leanstream::io
