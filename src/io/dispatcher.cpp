#include "io/dispatcher.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace leanstream::io {
namespace {

uint32_t needed_bytes(const Read& read) {
  return read.needed == 0 ? read.size : read.needed;
}

}  // namespace

Dispatcher::Dispatcher(std::vector<uint32_t> alignments, const Limits& limits, Throttle* throttle)
    : alignments_(std::move(alignments)),
      limits_(limits),
      throttle_(throttle),
      queue_(limits.capacity),
      flights_(limits.depth) {
  free_.reserve(limits.depth);
  again_.reserve(limits.depth);
  held_.reserve(limits.depth);
  for (uint32_t id = limits.depth; id-- > 0;) free_.push_back(id);
}

bool Dispatcher::add(const Read& read) {
  abandoned_ = false;
  if (drops_ && is_before(read.generation, oldest_generation_)) return false;
  queue_.push(read);
  return true;
}

uint32_t Dispatcher::drop_before(uint32_t generation) {
  drops_ = true;
  oldest_generation_ = generation;
  return queue_.drop_before(generation);
}

uint32_t Dispatcher::abandon() {
  abandoned_ = true;
  const auto forgotten = static_cast<uint32_t>(again_.size() + held_.size());
  for (const uint32_t id : again_) release(id);
  again_.clear();
  for (const Held& held : held_) release(held.id);
  held_.clear();
  return queue_.clear() + forgotten;
}

std::optional<DeviceRead> Dispatcher::next(uint64_t now_us) {
  if (!again_.empty()) {
    const uint32_t id = again_.back();
    again_.pop_back();
    return issue(id);
  }
  if (queue_.empty() || free_.empty()) return std::nullopt;
  const uint32_t id = free_.back();
  free_.pop_back();
  Flight& flight = flights_[id];
  flight = {};
  flight.read = queue_.pop();
  flight.issued_us = now_us;
  if (throttle_ != nullptr) flight.due_us = throttle_->completion_us(now_us, flight.read.size);
  // Later issues have later deadlines: the check already planned comes first.
  if (deadline_check_us_ == kNever) deadline_check_us_ = now_us + limits_.deadline_us;
  return issue(id);
}

DeviceRead Dispatcher::issue(uint32_t id) {
  Flight& flight = flights_[id];
  flight.state = State::kInKernel;
  ++in_kernel_;
  const Read& read = flight.read;
  return {id, 2 * read.file + (flight.buffered ? 1 : 0), read.offset + flight.done, read.buffer + flight.done,
          read.size - flight.done};
}

Dispatcher::Outcome Dispatcher::finish(const DeviceResult& result, uint64_t now_us) {
  assert(result.id < flights_.size() && flights_[result.id].state == State::kInKernel);
  Flight& flight = flights_[result.id];
  --in_kernel_;
  if (result.result < 0) {
    const int error_number = -result.result;
    if (error_number == EAGAIN || error_number == EINTR) return repeat(result.id, Outcome::kRepeat);
    if (error_number == EINVAL && alignment_of(flight) > 1) {
      flight.buffered = true;
      failure_ = {flight.read, error_number};
      return repeat(result.id, Outcome::kBuffered);
    }
    if (error_number == ECANCELED && abandoned_) {
      release(result.id);
      return Outcome::kGone;
    }
    return fail(result.id, error_number);
  }
  const uint32_t here = flight.done + static_cast<uint32_t>(result.result);
  if (here < needed_bytes(flight.read)) {
    // Direct reads may start at aligned bytes only. Where not even one of those is new, the file ends.
    const uint32_t aligned = here & ~(alignment_of(flight) - 1);
    if (aligned == flight.done) return fail(result.id, 0);
    flight.done = aligned;
    return repeat(result.id, Outcome::kRepeat);
  }
  if (abandoned_ && flight.due_us > now_us) {
    release(result.id);
    return Outcome::kGone;
  }
  flight.state = State::kHeld;
  held_.push_back({std::max(flight.due_us, now_us), result.id});
  std::push_heap(held_.begin(), held_.end());
  return Outcome::kArrived;
}

Dispatcher::Outcome Dispatcher::repeat(uint32_t id, Outcome why) {
  if (abandoned_) {
    release(id);
    return Outcome::kGone;
  }
  flights_[id].state = State::kAgain;
  again_.push_back(id);
  return why;
}

Dispatcher::Outcome Dispatcher::fail(uint32_t id, int error_number) {
  failure_ = {flights_[id].read, error_number};
  release(id);
  return Outcome::kFailed;
}

void Dispatcher::release(uint32_t id) {
  flights_[id].state = State::kFree;
  free_.push_back(id);
}

std::optional<Dispatcher::Arrival> Dispatcher::arrived(uint64_t now_us) {
  if (held_.empty() || held_.front().due_us > now_us) return std::nullopt;
  std::pop_heap(held_.begin(), held_.end());
  const uint32_t id = held_.back().id;
  held_.pop_back();
  release(id);
  return Arrival{flights_[id].read, flights_[id].buffered};
}

const Read* Dispatcher::overdue(uint64_t now_us) {
  if (now_us < deadline_check_us_) return nullptr;
  const Flight* oldest = nullptr;
  for (const Flight& flight : flights_)
    if (flight.state == State::kInKernel && (oldest == nullptr || flight.issued_us < oldest->issued_us))
      oldest = &flight;
  deadline_check_us_ = oldest == nullptr ? kNever : oldest->issued_us + limits_.deadline_us;
  if (now_us < deadline_check_us_) return nullptr;
  deadline_check_us_ = kNever;
  return &oldest->read;
}

uint64_t Dispatcher::next_event_us() const {
  const uint64_t held = held_.empty() ? kNever : held_.front().due_us;
  return std::min(held, in_kernel_ == 0 ? kNever : deadline_check_us_);
}

}  // namespace leanstream::io
