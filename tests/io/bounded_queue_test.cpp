#include "io/bounded_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace leanstream::io {
namespace {

TEST(BoundedQueue, is_first_in_first_out_and_refuses_when_full) {
  BoundedQueue<int> queue(3);
  int item = 0;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.try_pop(&item));
  int pushed = 0;
  while (queue.try_push(pushed)) ++pushed;
  EXPECT_GE(pushed, 3);
  for (int expected = 0; expected < pushed; ++expected) {
    ASSERT_TRUE(queue.try_pop(&item));
    EXPECT_EQ(item, expected);
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.try_push(7));
  EXPECT_FALSE(queue.empty());
}

TEST(BoundedQueue, loses_and_doubles_nothing_between_many_threads) {
  constexpr uint32_t kWriters = 3, kReaders = 2, kEach = 20000;
  BoundedQueue<uint32_t> queue(64);
  std::vector<std::atomic<uint32_t>> seen(kWriters * kEach);
  std::atomic<uint32_t> popped{0};
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < kWriters; ++w)
    threads.emplace_back([&, w] {
      for (uint32_t i = 0; i < kEach; ++i)
        while (!queue.try_push(w * kEach + i)) std::this_thread::yield();
    });
  for (uint32_t r = 0; r < kReaders; ++r)
    threads.emplace_back([&] {
      uint32_t item;
      while (popped.load() < seen.size()) {
        if (queue.try_pop(&item)) {
          ++seen[item];
          ++popped;
        } else {
          std::this_thread::yield();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : seen) ASSERT_EQ(count.load(), 1u);
}

}  // namespace
}  // namespace leanstream::io
