#include "io/dispatcher.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace leanstream::io {
namespace {

constexpr uint64_t kDeadlineUs = 1000;

Read make_read(uint64_t offset, uint32_t size = 8192) {
  Read read;
  read.offset = offset;
  read.size = size;
  return read;
}

// One direct file (alignment 4096) and one buffered.
Dispatcher make_dispatcher(uint32_t depth = 4, Throttle* throttle = nullptr) {
  return Dispatcher({4096, 1}, {16, depth, kDeadlineUs}, throttle);
}

TEST(Dispatcher, issues_no_more_than_its_depth_and_goes_on_when_a_read_is_delivered) {
  Dispatcher dispatcher = make_dispatcher(2);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(dispatcher.add(make_read(i * 8192)));
  const auto first = dispatcher.next(0), second = dispatcher.next(0);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->id, second->id);
  EXPECT_FALSE(dispatcher.next(0));
  EXPECT_FALSE(dispatcher.has_room_in_flight());
  EXPECT_EQ(dispatcher.finish({first->id, 8192}, 5), Dispatcher::Outcome::kArrived);
  const auto arrival = dispatcher.arrived(5);
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->read.offset, 0u);
  EXPECT_FALSE(arrival->buffered);
  EXPECT_FALSE(dispatcher.arrived(5));
  const auto third = dispatcher.next(5);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->offset, 2u * 8192);
}

TEST(Dispatcher, continues_a_short_direct_read_from_the_last_aligned_byte) {
  Dispatcher dispatcher = make_dispatcher();
  std::byte buffer[12288];
  Read wanted = make_read(4096, 12288);
  wanted.buffer = buffer;
  dispatcher.add(wanted);
  const auto read = dispatcher.next(0);
  EXPECT_EQ(dispatcher.finish({read->id, 5000}, 1), Dispatcher::Outcome::kRepeat);
  const auto rest = dispatcher.next(1);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->id, read->id);
  EXPECT_EQ(rest->offset, 8192u);
  EXPECT_EQ(rest->size, 8192u);
  EXPECT_EQ(rest->buffer, buffer + 4096);
  EXPECT_EQ(dispatcher.finish({rest->id, 8192}, 2), Dispatcher::Outcome::kArrived);
}

TEST(Dispatcher, continues_a_short_buffered_read_at_the_byte) {
  Dispatcher dispatcher = make_dispatcher();
  std::byte buffer[50];
  Read wanted = make_read(100, 50);
  wanted.buffer = buffer;
  wanted.file = 1;
  dispatcher.add(wanted);
  const auto read = dispatcher.next(0);
  EXPECT_EQ(dispatcher.finish({read->id, 7}, 1), Dispatcher::Outcome::kRepeat);
  EXPECT_EQ(dispatcher.next(1)->offset, 107u);
}

TEST(Dispatcher, is_content_with_the_needed_bytes) {
  Dispatcher dispatcher = make_dispatcher();
  Read wanted = make_read(0, 8192);
  wanted.needed = 4100;
  dispatcher.add(wanted);
  EXPECT_EQ(dispatcher.finish({dispatcher.next(0)->id, 4100}, 1), Dispatcher::Outcome::kArrived);
}

TEST(Dispatcher, calls_a_read_without_progress_the_end_of_the_file) {
  for (const int32_t result : {0, 4000}) {
    Dispatcher dispatcher = make_dispatcher();
    dispatcher.add(make_read(4096));
    EXPECT_EQ(dispatcher.finish({dispatcher.next(0)->id, result}, 1), Dispatcher::Outcome::kFailed);
    EXPECT_EQ(dispatcher.failure().error_number, 0);
    EXPECT_EQ(dispatcher.failure().read.offset, 4096u);
  }
}

TEST(Dispatcher, repeats_what_was_interrupted_and_keeps_its_first_deadline) {
  Dispatcher dispatcher = make_dispatcher();
  dispatcher.add(make_read(0));
  const auto read = dispatcher.next(0);
  EXPECT_EQ(dispatcher.finish({read->id, -EAGAIN}, 600), Dispatcher::Outcome::kRepeat);
  EXPECT_EQ(dispatcher.next(600)->id, read->id);
  EXPECT_EQ(dispatcher.finish({read->id, -EINTR}, 700), Dispatcher::Outcome::kRepeat);
  EXPECT_TRUE(dispatcher.next(700));
  EXPECT_EQ(dispatcher.overdue(kDeadlineUs - 1), nullptr);
  EXPECT_NE(dispatcher.overdue(kDeadlineUs), nullptr);
}

TEST(Dispatcher, takes_a_refused_direct_read_to_the_buffered_twin_once) {
  Dispatcher dispatcher = make_dispatcher();
  dispatcher.add(make_read(0));
  const auto direct = dispatcher.next(0);
  EXPECT_EQ(direct->descriptor, 0u);
  EXPECT_EQ(dispatcher.finish({direct->id, -EINVAL}, 1), Dispatcher::Outcome::kBuffered);
  const auto buffered = dispatcher.next(1);
  EXPECT_EQ(buffered->descriptor, 1u);
  EXPECT_EQ(dispatcher.finish({buffered->id, 8192}, 2), Dispatcher::Outcome::kArrived);
  EXPECT_TRUE(dispatcher.arrived(2)->buffered);

  dispatcher.add(make_read(0));
  const auto again = dispatcher.next(3);
  dispatcher.finish({again->id, -EINVAL}, 3);
  EXPECT_EQ(dispatcher.finish({dispatcher.next(3)->id, -EINVAL}, 4), Dispatcher::Outcome::kFailed);
  EXPECT_EQ(dispatcher.failure().error_number, EINVAL);
}

TEST(Dispatcher, fails_a_read_with_the_errno) {
  Dispatcher dispatcher = make_dispatcher();
  dispatcher.add(make_read(8192));
  EXPECT_EQ(dispatcher.finish({dispatcher.next(0)->id, -EIO}, 1), Dispatcher::Outcome::kFailed);
  EXPECT_EQ(dispatcher.failure().error_number, EIO);
  EXPECT_EQ(dispatcher.in_flight(), 0u);
}

TEST(Dispatcher, finds_the_read_that_is_overdue_among_later_ones) {
  Dispatcher dispatcher = make_dispatcher();
  for (uint64_t i = 0; i < 3; ++i) dispatcher.add(make_read(i * 8192));
  const auto first = dispatcher.next(0);
  const auto second = dispatcher.next(100);
  EXPECT_TRUE(dispatcher.next(200));
  EXPECT_EQ(dispatcher.next_event_us(), kDeadlineUs);
  dispatcher.finish({first->id, 8192}, 300);
  dispatcher.arrived(300);
  EXPECT_EQ(dispatcher.overdue(kDeadlineUs), nullptr);
  EXPECT_EQ(dispatcher.next_event_us(), 100 + kDeadlineUs);
  const Read* late = dispatcher.overdue(100 + kDeadlineUs);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->offset, second->offset);
  EXPECT_EQ(dispatcher.next_event_us(), kNever);  // said once: a worker must not spin on it
}

TEST(Dispatcher, has_no_deadline_without_a_read_in_the_kernel) {
  Dispatcher dispatcher = make_dispatcher();
  EXPECT_EQ(dispatcher.next_event_us(), kNever);
  dispatcher.add(make_read(0));
  dispatcher.finish({dispatcher.next(0)->id, 8192}, 10);
  dispatcher.arrived(10);
  EXPECT_EQ(dispatcher.next_event_us(), kNever);
  EXPECT_EQ(dispatcher.overdue(10 * kDeadlineUs), nullptr);
  dispatcher.add(make_read(0));  // its own deadline, not that of the one before
  dispatcher.next(20 * kDeadlineUs);
  EXPECT_EQ(dispatcher.overdue(21 * kDeadlineUs - 1), nullptr);
  EXPECT_NE(dispatcher.overdue(21 * kDeadlineUs), nullptr);
}

TEST(Dispatcher, holds_a_result_back_until_the_imitated_drive_has_it) {
  Throttle throttle(*StorageModel::parse("1GB/s@100000,lat=90us"));
  Dispatcher dispatcher = make_dispatcher(4, &throttle);
  dispatcher.add(make_read(0, 100000));
  dispatcher.add(make_read(200000, 100000));
  const auto first = dispatcher.next(1000), second = dispatcher.next(1000);
  // The real drive may answer in any order.
  EXPECT_EQ(dispatcher.finish({second->id, 100000}, 1010), Dispatcher::Outcome::kArrived);
  EXPECT_EQ(dispatcher.finish({first->id, 100000}, 1020), Dispatcher::Outcome::kArrived);
  EXPECT_EQ(dispatcher.in_flight(), 2u);
  EXPECT_EQ(dispatcher.in_kernel(), 0u);
  EXPECT_EQ(dispatcher.next_event_us(), 1190u);
  EXPECT_FALSE(dispatcher.arrived(1189));
  EXPECT_EQ(dispatcher.arrived(1190)->read.offset, 0u);
  EXPECT_FALSE(dispatcher.arrived(1190));
  EXPECT_EQ(dispatcher.arrived(1290)->read.offset, 200000u);
}

TEST(Dispatcher, forgets_stale_reads_queued_before_and_added_after) {
  Dispatcher dispatcher = make_dispatcher();
  Read old = make_read(0), young = make_read(8192);
  old.generation = 1;
  young.generation = 2;
  dispatcher.add(old);
  dispatcher.add(young);
  EXPECT_EQ(dispatcher.drop_before(2), 1u);
  EXPECT_FALSE(dispatcher.add(old));
  EXPECT_EQ(dispatcher.next(0)->offset, 8192u);
  EXPECT_FALSE(dispatcher.next(0));
}

TEST(Dispatcher, repeats_nothing_after_abandon_and_keeps_what_the_kernel_holds) {
  Dispatcher dispatcher = make_dispatcher(2);
  for (uint64_t i = 0; i < 3; ++i) dispatcher.add(make_read(i * 8192));
  const auto first = dispatcher.next(0), second = dispatcher.next(0);
  EXPECT_EQ(dispatcher.abandon(), 1u);
  EXPECT_EQ(dispatcher.in_kernel(), 2u);
  std::vector<uint32_t> held;
  dispatcher.for_each_in_kernel([&](uint32_t id) { held.push_back(id); });
  EXPECT_EQ(held.size(), 2u);
  EXPECT_EQ(dispatcher.finish({first->id, -EAGAIN}, 1), Dispatcher::Outcome::kGone);
  EXPECT_EQ(dispatcher.finish({second->id, -ECANCELED}, 1), Dispatcher::Outcome::kGone);
  EXPECT_EQ(dispatcher.in_flight(), 0u);
  EXPECT_FALSE(dispatcher.next(2));
}

}  // namespace
}  // namespace leanstream::io
