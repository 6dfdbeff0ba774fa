#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"

namespace leanstream::runtime {

class MemoryBudget;

// Bytes taken from a budget, given back when this goes. Move-only; the budget outlives it.
class MemoryHold {
 public:
  MemoryHold() = default;  // nothing
  MemoryHold(MemoryHold&& other) noexcept { *this = std::move(other); }
  MemoryHold& operator=(MemoryHold&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryHold();

  uint64_t bytes() const { return bytes_; }

 private:
  friend class MemoryBudget;
  MemoryHold(MemoryBudget* budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

// The one account of what this process may hold (peak RSS) and of who holds it. Sizes are promises made before memory
// is touched: whoever takes bytes never touches more. Thread-safe.
class MemoryBudget {
 public:
  // fixed_bytes: what the process holds without any model. Errors: kOutOfBudget when that alone is more.
  static Result<std::unique_ptr<MemoryBudget>> create(uint64_t budget_bytes, uint64_t fixed_bytes);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t fixed_bytes() const { return fixed_bytes_; }
  uint64_t held_bytes() const;  // by all holds, fixed_bytes() included

  // Nothing when the budget has not so much left.
  std::optional<MemoryHold> take(uint64_t bytes);

 private:
  friend class MemoryHold;
  MemoryBudget(uint64_t budget_bytes, uint64_t fixed_bytes)
      : budget_bytes_(budget_bytes), fixed_bytes_(fixed_bytes), held_bytes_(fixed_bytes) {}
  void give_back(uint64_t bytes);

  const uint64_t budget_bytes_;
  const uint64_t fixed_bytes_;
  mutable std::mutex mutex_;
  uint64_t held_bytes_;
};

// What this process holds now, and will for code still to be paged in, the stacks of `threads` threads and small
// allocations that nobody accounts for.
uint64_t measure_fixed_bytes(uint32_t threads);

// What the system lets this process hold, less 10 %: what it has and what MemAvailable and its cgroup leave.
uint64_t default_budget_bytes();

// Gives free heap back to the system, so that what was given back to a budget is truly no longer held.
void release_free_heap();

}  // namespace leanstream::runtime
