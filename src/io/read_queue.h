#pragma once

#include <cstdint>
#include <vector>

#include "io/read_pool.h"

namespace leanstream::io {

// Whether `generation` lies before `bound`, modulo 2^32.
constexpr bool is_before(uint32_t generation, uint32_t bound) {
  return static_cast<int32_t>(generation - bound) < 0;
}

// Queued reads, most important first: by priority, then in order of entry. A bounded binary heap over a fixed store of
// reads; no allocation after construction. Single-thread.
class ReadQueue {
 public:
  explicit ReadQueue(uint32_t capacity);

  uint32_t size() const { return static_cast<uint32_t>(heap_.size()); }
  bool empty() const { return heap_.empty(); }
  bool full() const { return free_.empty(); }

  void push(const Read& read);  // not when full
  Read pop();                   // not when empty

  // Takes out reads of generations before `generation`, O(size). Returns how many.
  uint32_t drop_before(uint32_t generation);
  uint32_t clear();

 private:
  struct Entry {
    uint32_t priority;
    uint32_t slot;  // of store_
    uint64_t age;
  };
  // For std::push_heap and friends, which keep the greatest in front.
  static bool later(const Entry& a, const Entry& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.age > b.age;
  }

  std::vector<Read> store_;
  std::vector<uint32_t> free_;
  std::vector<Entry> heap_;
  uint64_t next_age_ = 0;
};

}  // namespace leanstream::io
