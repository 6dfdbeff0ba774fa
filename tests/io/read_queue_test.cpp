#include "io/read_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

namespace leanstream::io {
namespace {

Read make_read(uint32_t priority, uint32_t generation, uint64_t offset) {
  Read read;
  read.priority = priority;
  read.generation = generation;
  read.offset = offset;
  return read;
}

TEST(ReadQueue, gives_the_lowest_priority_number_first_and_equals_in_order) {
  std::mt19937 random(1);
  ReadQueue queue(500);
  std::vector<std::pair<uint32_t, uint64_t>> expected;
  for (uint64_t i = 0; i < 500; ++i) {
    const uint32_t priority = random() % 7;
    queue.push(make_read(priority, 0, i));
    expected.emplace_back(priority, i);
  }
  EXPECT_TRUE(queue.full());
  std::sort(expected.begin(), expected.end());
  for (const auto& [priority, offset] : expected) {
    const Read read = queue.pop();
    EXPECT_EQ(read.priority, priority);
    EXPECT_EQ(read.offset, offset);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(ReadQueue, drops_older_generations_and_keeps_the_order_of_the_rest) {
  ReadQueue queue(8);
  for (uint32_t i = 0; i < 8; ++i) queue.push(make_read(8 - i, i % 2 == 0 ? 4 : 5, i));
  EXPECT_EQ(queue.drop_before(5), 4u);
  EXPECT_EQ(queue.drop_before(5), 0u);
  for (const uint64_t offset : {7, 5, 3, 1}) EXPECT_EQ(queue.pop().offset, offset);
  EXPECT_TRUE(queue.empty());
  for (uint32_t i = 0; i < 8; ++i) queue.push(make_read(0, 0, i));  // the room is back
  EXPECT_TRUE(queue.full());
}

TEST(ReadQueue, compares_generations_modulo_two_to_the_32) {
  ReadQueue queue(2);
  queue.push(make_read(0, UINT32_MAX, 1));
  queue.push(make_read(0, 3, 2));
  EXPECT_EQ(queue.drop_before(1), 1u);
  EXPECT_EQ(queue.pop().offset, 2u);
}

TEST(ReadQueue, is_empty_after_clear) {
  ReadQueue queue(2);
  queue.push(make_read(0, 0, 1));
  EXPECT_EQ(queue.clear(), 1u);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace leanstream::io
