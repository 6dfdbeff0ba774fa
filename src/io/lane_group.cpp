#include "io/lane_group.h"

#include <string>
#include <utility>

#include "io/clock.h"
#include "io/futex.h"

namespace leanstream::io {

Status LaneGroup::start(uint32_t lanes, std::function<void(uint32_t)> part) {
  part_ = std::move(part);
  for (uint32_t lane = 1; lane < lanes; ++lane) {
    Result<Thread> thread = Thread::start("io-lane-" + std::to_string(lane), [this, lane] { sibling_main(lane); });
    if (!thread.ok()) return thread.status();
    siblings_.push_back(*std::move(thread));
  }
  return {};
}

LaneGroup::~LaneGroup() {
  quit_ = true;
  group_go_.fetch_add(1, std::memory_order_release);
  futex_wake_all(group_go_);
  siblings_.clear();  // joins
}

void LaneGroup::run() {
  const auto siblings = static_cast<uint32_t>(siblings_.size());
  const uint32_t round = group_go_.load(std::memory_order_relaxed) + 1;
  group_go_.store(round, std::memory_order_release);
  futex_wake_all(group_go_);
  part_(0);
  for (uint32_t here; (here = arrivals_.load(std::memory_order_acquire)) != round * siblings;)
    futex_wait(arrivals_, here, kNever);
}

void LaneGroup::sibling_main(uint32_t lane) {
  for (uint32_t round = 1;; ++round) {
    while (group_go_.load(std::memory_order_acquire) != round) futex_wait(group_go_, round - 1, kNever);
    if (quit_) return;
    part_(lane);
    arrivals_.fetch_add(1, std::memory_order_release);
    futex_wake(arrivals_, 1);
  }
}

}  // namespace leanstream::io
