#include "io/device_pool.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/io/fake_device.h"
#include "tests/io/scratch_file.h"

namespace leanstream::io {
namespace {

constexpr uint32_t kBytes = 4096;  // of a read
constexpr uint32_t kPieces = 64;
constexpr uint64_t kShortDeadlineUs = 30'000;

uint64_t at(uint32_t piece) {
  return uint64_t{piece} * kBytes;
}

// A pool over a fake drive that holds the bytes of a real file.
class FakePool : public testing::Test {
 protected:
  void open(uint32_t depth, const PoolParams& params = {}, uint32_t workers = 1) {
    std::vector<std::unique_ptr<Device>> devices;
    for (uint32_t i = 0; i < workers; ++i) devices.push_back(std::make_unique<FakeDevice>(drive_, depth));
    Result<std::unique_ptr<ReadPool>> pool = DevicePool::create({&*file_, 1}, params, std::move(devices), {});
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    pool_ = *std::move(pool);
  }

  Read read(uint32_t piece, uint32_t priority = 0, uint32_t generation = 0) {
    Read read;
    read.size = kBytes;
    read.offset = at(piece);
    read.buffer = arena_.data() + at(piece);
    read.priority = priority;
    read.generation = generation;
    read.flag = &flags_[piece];
    read.fill = 1;
    return read;
  }
  void submit(const Read& read) { pool_->submit({&read, 1}); }
  Status wait(uint32_t piece) { return pool_->wait(flags_[piece], 1, nullptr, nullptr); }
  bool right(uint32_t piece) {
    return std::memcmp(arena_.data() + at(piece), scratch_.bytes().data() + at(piece), kBytes) == 0;
  }

  ScratchFile scratch_{kPieces * kBytes};
  Result<StorageFile> file_ = StorageFile::open(scratch_.path());
  std::shared_ptr<FakeDrive> drive_ = std::make_shared<FakeDrive>(scratch_.bytes());
  std::vector<std::byte> arena_ = std::vector<std::byte>(kPieces * kBytes);
  std::vector<ArrivalFlag> flags_ = std::vector<ArrivalFlag>(kPieces);
  std::unique_ptr<ReadPool> pool_;
};

TEST_F(FakePool, brings_the_bytes_and_raises_the_flag_to_the_filling) {
  open(4);
  submit(read(3));
  ASSERT_TRUE(wait(3).ok());
  EXPECT_TRUE(right(3));
  EXPECT_EQ(flags_[4].filled, 0u);
  const PoolCounters counters = pool_->counters();
  EXPECT_EQ(counters.reads, 1u);
  EXPECT_EQ(counters.bytes, kBytes);
}

TEST_F(FakePool, reads_the_most_important_first) {
  open(1);
  drive_->hang(at(0));
  submit(read(0));
  ASSERT_TRUE(drive_->wait_until_issued(1));
  const Read reads[] = {read(1, 5), read(2, 3), read(3, 9), read(4, 3), read(5, 0)};
  pool_->submit(reads);
  drive_->release(at(0));
  for (uint32_t piece = 0; piece <= 5; ++piece) ASSERT_TRUE(wait(piece).ok());
  EXPECT_EQ(drive_->issued(), (std::vector<uint64_t>{at(0), at(5), at(2), at(4), at(1), at(3)}));
}

TEST_F(FakePool, never_issues_stale_reads) {
  open(1);
  drive_->hang(at(0));
  submit(read(0, 0, 1));
  ASSERT_TRUE(drive_->wait_until_issued(1));
  const Read reads[] = {read(1, 0, 1), read(2, 0, 2), read(3, 0, 1)};
  pool_->submit(reads);
  pool_->drop_before(2);
  submit(read(4, 0, 1));
  submit(read(5, 0, 3));
  drive_->release(at(0));
  ASSERT_TRUE(wait(5).ok());
  ASSERT_TRUE(wait(2).ok());
  EXPECT_EQ(drive_->issued(), (std::vector<uint64_t>{at(0), at(2), at(5)}));
  EXPECT_EQ(flags_[1].filled + flags_[3].filled + flags_[4].filled, 0u);
  EXPECT_EQ(pool_->counters().dropped, 3u);
  EXPECT_EQ(flags_[0].filled, 1u);  // it was in flight: it arrives
}

TEST_F(FakePool, continues_short_reads_and_repeats_interrupted_ones) {
  open(2);
  Read wide = read(0);
  wide.size = 4 * kBytes;
  drive_->script(at(0), 2 * kBytes + 17);
  drive_->script(at(3), -EAGAIN);
  drive_->script(at(3), -EINTR);
  submit(wide);
  ASSERT_TRUE(wait(0).ok());
  for (uint32_t piece = 0; piece < 4; ++piece) EXPECT_TRUE(right(piece));
  EXPECT_EQ(pool_->counters().retried, 3u);
}

TEST_F(FakePool, says_which_read_failed_and_why_and_issues_no_more) {
  open(1);
  drive_->hang(at(0));
  drive_->script(at(7), -EIO);
  submit(read(0));
  ASSERT_TRUE(drive_->wait_until_issued(1));
  const Read reads[] = {read(7), read(8)};
  pool_->submit(reads);
  drive_->release(at(0));
  const std::string expected =
      "cannot read " + scratch_.path() + " at offset 28672 (4096 bytes): " + std::strerror(EIO);
  for (const uint32_t piece : {7, 8}) {
    const Status status = wait(piece);
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.message(), expected);
  }
  submit(read(9));
  EXPECT_FALSE(wait(9).ok());
  EXPECT_TRUE(pool_->quiesce(1'000'000));
  EXPECT_EQ(drive_->issued(), (std::vector<uint64_t>{at(0), at(7)}));
  EXPECT_EQ(pool_->status().message(), expected);
  EXPECT_TRUE(wait(0).ok());  // what arrived is there
}

TEST_F(FakePool, fails_at_the_end_of_the_file_unless_the_needed_bytes_came) {
  open(2);
  Read last = read(kPieces - 1);
  last.offset -= 4096;
  last.size = 3 * kBytes;
  last.needed = 2 * kBytes;
  last.buffer = arena_.data();
  submit(last);
  ASSERT_TRUE(wait(kPieces - 1).ok());
  last.flag = &flags_[0];
  last.needed = 2 * kBytes + 1;
  submit(last);
  const Status status = wait(0);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("the file ends before"), std::string::npos) << status.message();
}

TEST_F(FakePool, fails_within_the_deadline_when_the_drive_stalls_and_touches_the_buffer_no_more) {
  PoolParams params;
  params.deadline_us = kShortDeadlineUs;
  open(2, params);
  drive_->hang(at(5));
  submit(read(5));
  ASSERT_TRUE(drive_->wait_until_issued(1));
  const Status status = wait(5);
  EXPECT_EQ(status.code(), Code::kDeadline);
  EXPECT_EQ(status.message(),
            "cannot read " + scratch_.path() + " at offset 20480 (4096 bytes): the drive did not answer within 30 ms");
  EXPECT_FALSE(pool_->quiesce(1000));
  EXPECT_FALSE(drive_->cancelled().empty());
  submit(read(5));
  EXPECT_FALSE(wait(5).ok());
  EXPECT_EQ(drive_->issued().size(), 1u);
  drive_->release(at(5));  // the drive comes back late
  EXPECT_TRUE(pool_->quiesce(10'000'000));
}

TEST_F(FakePool, can_be_destroyed_while_the_drive_stalls) {
  PoolParams params;
  params.deadline_us = kShortDeadlineUs;
  open(2, params);
  drive_->hang(at(5));
  submit(read(5));
  EXPECT_FALSE(wait(5).ok());
  pool_.reset();
}

TEST_F(FakePool, gives_up_on_a_filling_that_nobody_reads) {
  PoolParams params;
  params.deadline_us = kShortDeadlineUs;
  open(2, params);
  const Status status = wait(1);
  EXPECT_EQ(status.code(), Code::kDeadline);
  EXPECT_NE(status.message().find("no read at all arrived"), std::string::npos) << status.message();
}

TEST_F(FakePool, stops_waiting_when_asked) {
  open(1);
  drive_->hang(at(0));
  submit(read(0));
  int asked = 0;
  const auto stop = [](void* count) { return ++*static_cast<int*>(count) == 3; };
  EXPECT_EQ(pool_->wait(flags_[0], 1, stop, &asked).code(), Code::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(pool_->status().ok());
  drive_->release(at(0));
  EXPECT_TRUE(wait(0).ok());
}

TEST_F(FakePool, drops_what_is_queued_when_quiesced_and_works_again_afterwards) {
  open(1);
  drive_->hang(at(0));
  const Read reads[] = {read(0), read(1), read(2)};
  pool_->submit(reads);
  ASSERT_TRUE(drive_->wait_until_issued(1));
  EXPECT_FALSE(pool_->quiesce(1000));
  drive_->release(at(0));
  EXPECT_TRUE(pool_->quiesce(10'000'000));
  EXPECT_EQ(drive_->issued().size(), 1u);
  EXPECT_EQ(pool_->counters().dropped, 2u);
  submit(read(2));
  EXPECT_TRUE(wait(2).ok());
  EXPECT_TRUE(right(2));
}

TEST_F(FakePool, fails_when_more_reads_are_queued_than_it_takes) {
  PoolParams params;
  params.capacity = 4;
  open(1, params);
  drive_->hang(at(0));
  std::vector<Read> reads(200, read(0));
  pool_->submit(reads);
  EXPECT_EQ(pool_->status().code(), Code::kInternal);
  EXPECT_EQ(wait(1).code(), Code::kInternal);
  drive_->release(at(0));
}

TEST_F(FakePool, says_once_per_file_that_direct_reads_are_refused) {
  if (!file_->direct()) GTEST_SKIP() << "this file system has no O_DIRECT";
  std::string log;
  PoolParams params;
  params.log = {[](std::string_view line, void* user) { *static_cast<std::string*>(user) += std::string(line) + "\n"; },
                &log};
  open(1, params);
  drive_->script(at(2), -EINVAL);
  drive_->script(at(3), -EINVAL);
  submit(read(2));
  submit(read(3));
  ASSERT_TRUE(wait(2).ok());
  ASSERT_TRUE(wait(3).ok());
  EXPECT_TRUE(right(2) && right(3));
  EXPECT_EQ(pool_->facts().refusals.size(), 1u);
  pool_.reset();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
}

// The use that exact streaming makes of the pool: a ring of slots, refilled by the threads that consume them.
TEST_F(FakePool, streams_through_a_ring_of_slots_from_several_threads) {
  constexpr uint32_t kThreads = 3, kSlotsEach = 4, kRounds = 500;
  for (const uint32_t workers : {1u, 3u}) {
    open(2, {}, workers);
    std::vector<std::thread> threads;
    std::atomic<uint32_t> wrong{0};
    const uint32_t first_fill = workers * 10000;
    for (uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const auto chunk = [&](uint32_t s) { return (s * 7 + t * 13) % kPieces; };
        const auto fill_slot = [&](uint32_t s) {
          const uint32_t slot = t * kSlotsEach + s % kSlotsEach;
          Read read;
          read.size = kBytes;
          read.offset = at(chunk(s));
          read.buffer = arena_.data() + at(slot);
          read.flag = &flags_[slot];
          read.fill = first_fill + s;
          pool_->submit({&read, 1});
        };
        for (uint32_t s = 0; s < kSlotsEach; ++s) fill_slot(s);
        for (uint32_t s = 0; s < kRounds; ++s) {
          const uint32_t slot = t * kSlotsEach + s % kSlotsEach;
          if (!pool_->wait(flags_[slot], first_fill + s, nullptr, nullptr).ok()) ++wrong;
          if (std::memcmp(arena_.data() + at(slot), scratch_.bytes().data() + at(chunk(s)), kBytes) != 0) ++wrong;
          if (s + kSlotsEach < kRounds) fill_slot(s + kSlotsEach);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_EQ(pool_->counters().reads, kThreads * kRounds);
    pool_.reset();
  }
}

}  // namespace
}  // namespace leanstream::io
