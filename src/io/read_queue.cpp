#include "io/read_queue.h"

#include <algorithm>
#include <cassert>

namespace leanstream::io {

ReadQueue::ReadQueue(uint32_t capacity) : store_(capacity) {
  heap_.reserve(capacity);
  free_.reserve(capacity);
  for (uint32_t slot = capacity; slot-- > 0;) free_.push_back(slot);
}

void ReadQueue::push(const Read& read) {
  assert(!full());
  const uint32_t slot = free_.back();
  free_.pop_back();
  store_[slot] = read;
  heap_.push_back({read.priority, slot, next_age_++});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

Read ReadQueue::pop() {
  assert(!empty());
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const uint32_t slot = heap_.back().slot;
  heap_.pop_back();
  free_.push_back(slot);
  return store_[slot];
}

uint32_t ReadQueue::drop_before(uint32_t generation) {
  const auto stale = std::partition(heap_.begin(), heap_.end(), [&](const Entry& entry) {
    return !is_before(store_[entry.slot].generation, generation);
  });
  const auto dropped = static_cast<uint32_t>(heap_.end() - stale);
  if (dropped == 0) return 0;
  for (auto entry = stale; entry != heap_.end(); ++entry) free_.push_back(entry->slot);
  heap_.erase(stale, heap_.end());
  std::make_heap(heap_.begin(), heap_.end(), later);
  return dropped;
}

uint32_t ReadQueue::clear() {
  const uint32_t dropped = size();
  for (const Entry& entry : heap_) free_.push_back(entry.slot);
  heap_.clear();
  return dropped;
}

}  // namespace leanstream::io
