#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "base/thread.h"

namespace leanstream::io {

// Lane 0 and its siblings, which share out one job per round (the paper's Algorithm 1): lane 0 advances group_go, every
// lane does its part, and lane 0 meets its siblings before it goes on. Siblings are threads; lane 0 is whoever calls
// run(). Between rounds siblings sleep.
class LaneGroup {
 public:
  LaneGroup() = default;
  LaneGroup(const LaneGroup&) = delete;
  LaneGroup& operator=(const LaneGroup&) = delete;
  ~LaneGroup();

  // Starts lanes - 1 siblings. Errors: kIo when a thread cannot be started.
  Status start(uint32_t lanes, std::function<void(uint32_t lane)> part);

  // Runs part() on all lanes and returns when all are done. What lane 0 wrote before is visible to siblings, and what
  // they wrote is visible to lane 0 afterwards.
  void run();

 private:
  void sibling_main(uint32_t lane);

  std::function<void(uint32_t)> part_;
  std::vector<Thread> siblings_;
  bool quit_ = false;                               // written before group_go_
  alignas(128) std::atomic<uint32_t> group_go_{0};  // rounds begun; released by lane 0, acquired by siblings
  alignas(128) std::atomic<uint32_t> arrivals_{0};  // siblings done, over all rounds; released by them
};

}  // namespace leanstream::io
