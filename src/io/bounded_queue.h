#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leanstream::io {

// First in, first out, of fixed capacity, for any number of writers and readers. No locks; no allocation after
// construction. Each cell carries a turn: `position` when a writer may fill it, `position + 1` when a reader may empty
// it (D. Vyukov's bounded queue). A writer interrupted half way hides the items behind its own meanwhile, and a reader
// interrupted half way blocks its cell: with several readers the queue may call itself full with fewer than `capacity`
// items.
template <typename T>
class BoundedQueue {
 public:
  // Holds at least `capacity` items.
  explicit BoundedQueue(uint32_t capacity) : cells_(std::bit_ceil(size_t{capacity} + 1)), mask_(cells_.size() - 1) {
    for (size_t i = 0; i < cells_.size(); ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  // false: full. The item is visible to the reader that pops it, with all that its writer wrote before.
  [[nodiscard]] bool try_push(const T& item) {
    size_t position = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const auto ahead = static_cast<intptr_t>(cell.turn.load(std::memory_order_acquire) - position);
      if (ahead < 0) return false;
      if (ahead > 0) {
        position = head_.load(std::memory_order_relaxed);
      } else if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        cell.item = item;
        // Sequentially consistent, not only release: a writer goes on to ask whether the reader sleeps.
        cell.turn.store(position + 1, std::memory_order_seq_cst);
        return true;
      }
    }
  }

  // false: empty.
  [[nodiscard]] bool try_pop(T* item) {
    size_t position = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const auto ahead = static_cast<intptr_t>(cell.turn.load(std::memory_order_acquire) - (position + 1));
      if (ahead < 0) return false;
      if (ahead > 0) {
        position = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        *item = cell.item;
        cell.turn.store(position + mask_ + 1, std::memory_order_release);
        return true;
      }
    }
  }

  // Whether the next pop would find nothing; certain only when nobody else pops. Ordered after the caller's earlier
  // sequentially consistent stores, as going to sleep needs.
  bool empty() const {
    const size_t position = tail_.load(std::memory_order_relaxed);
    return cells_[position & mask_].turn.load(std::memory_order_seq_cst) != position + 1;
  }

 private:
  struct Cell {
    std::atomic<size_t> turn;
    T item;
  };

  std::vector<Cell> cells_;
  const size_t mask_;
  alignas(128) std::atomic<size_t> head_{0};
  alignas(128) std::atomic<size_t> tail_{0};
};

}  // namespace leanstream::io
