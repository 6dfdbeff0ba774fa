#include "runtime/memory_budget.h"

#include <malloc.h>

#include "base/memory.h"
#include "base/units.h"

namespace leanstream::runtime {
namespace {

// Pages of the program and its libraries that are touched only later, and the heap's own overhead. All code of the
// command line and its libraries is 8 MB on x86-64 (`size`), of which 2 are there once a runtime is.
constexpr uint64_t kLateCodeBytes = uint64_t{6} << 20;
constexpr uint64_t kThreadBytes = uint64_t{128} << 10;  // the touched part of a worker's stack, and its heap arena

}  // namespace

MemoryHold::~MemoryHold() {
  if (budget_ != nullptr) budget_->give_back(bytes_);
}

Result<std::unique_ptr<MemoryBudget>> MemoryBudget::create(uint64_t budget_bytes, uint64_t fixed_bytes) {
  if (fixed_bytes > budget_bytes)
    return out_of_budget("the memory budget is " + format_bytes(budget_bytes) + " (" + std::to_string(budget_bytes) +
                         " bytes), less than the process takes without a model: " + format_bytes(fixed_bytes) + " (" +
                         std::to_string(fixed_bytes) + " bytes)");
  return std::unique_ptr<MemoryBudget>(new MemoryBudget(budget_bytes, fixed_bytes));
}

uint64_t MemoryBudget::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

std::optional<MemoryHold> MemoryBudget::take(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > budget_bytes_ - held_bytes_) return std::nullopt;
  held_bytes_ += bytes;
  return MemoryHold(this, bytes);
}

void MemoryBudget::give_back(uint64_t bytes) {
  release_free_heap();
  const std::lock_guard lock(mutex_);
  held_bytes_ -= bytes;
}

uint64_t measure_fixed_bytes(uint32_t threads) {
  release_free_heap();
  return process_rss_bytes() + kLateCodeBytes + threads * kThreadBytes;
}

uint64_t default_budget_bytes() {
  return (process_rss_bytes() + available_memory_bytes()) / 10 * 9;
}

void release_free_heap() {
#if defined(__GLIBC__) && !defined(LEANSTREAM_FOREIGN_HEAP)  // glibc is not ready to trim a heap that nobody uses
  ::malloc_trim(0);
#endif
}

}  // namespace leanstream::runtime
