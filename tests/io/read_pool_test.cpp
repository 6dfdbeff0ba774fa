#include "io/read_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "io/clock.h"
#include "tests/io/scratch_file.h"

namespace leanstream::io {
namespace {

struct Setting {
  const char* name;
  PoolParams::Kind kind;
  bool direct;
  uint32_t workers = 1, lanes = 1, depth = 8;
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

constexpr size_t kFileBytes = (3 << 20) + 1234;  // the last block is short
constexpr uint32_t kSlotBytes = 64 << 10;
constexpr uint32_t kSlots = 24;

class RealPool : public testing::TestWithParam<Setting> {
 protected:
  void open(const ScratchFile& scratch, PoolParams params = {}) {
    const Setting& setting = GetParam();
    params.kind = setting.kind;
    params.workers = setting.workers;
    params.lanes = setting.lanes;
    params.depth = setting.depth;
    file_ = std::make_unique<Result<StorageFile>>(StorageFile::open(scratch.path(), setting.direct));
    ASSERT_TRUE(file_->ok()) << file_->status().message();
    if (setting.direct && !(*file_)->direct()) GTEST_SKIP() << (*file_)->buffered_because();
    Result<std::unique_ptr<ReadPool>> pool = ReadPool::create({&**file_, 1}, arena(), params);
    if (pool.status().code() == Code::kUnsupported) GTEST_SKIP() << pool.status().message();
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    pool_ = *std::move(pool);
  }

  std::span<std::byte> arena() { return {memory_->data(), memory_->size_bytes()}; }

  Read read(uint32_t slot, uint64_t offset, uint64_t size) {
    Read read;
    read.offset = offset;
    read.size = static_cast<uint32_t>(size);
    read.needed = static_cast<uint32_t>(std::min<uint64_t>(size, (*file_)->size_bytes() - offset));
    read.buffer = arena().data() + size_t{slot} * kSlotBytes;
    read.flag = &flags_[slot];
    read.fill = flags_[slot].filled + 1;
    return read;
  }
  Status bring(const Read& read) {
    pool_->submit({&read, 1});
    return pool_->wait(*read.flag, read.fill, nullptr, nullptr);
  }

  Result<MappedMemory> memory_ = MappedMemory::allocate(kSlots * kSlotBytes);
  std::vector<ArrivalFlag> flags_ = std::vector<ArrivalFlag>(kSlots);
  std::unique_ptr<Result<StorageFile>> file_;
  std::unique_ptr<ReadPool> pool_;
};

TEST_P(RealPool, brings_the_right_bytes_from_everywhere_and_the_tail) {
  const ScratchFile scratch(kFileBytes);
  ASSERT_NO_FATAL_FAILURE(open(scratch));
  if (IsSkipped()) return;
  std::mt19937_64 random(1);
  const uint64_t alignment = (*file_)->alignment();
  std::vector<Read> slots(kSlots);
  for (int round = 0; round < 40; ++round) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const uint64_t tail = kFileBytes - 1;
      const uint64_t offset = (slot == 0 ? tail : random() % kFileBytes) / alignment * alignment;
      const uint64_t size = std::max<uint64_t>((1 + random() % kSlotBytes) / alignment * alignment, alignment);
      slots[slot] = read(slot, offset, size);
    }
    pool_->submit(slots);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const Read& done = slots[slot];
      const Status status = pool_->wait(flags_[slot], done.fill, nullptr, nullptr);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(std::memcmp(done.buffer, scratch.bytes().data() + done.offset, done.needed), 0)
          << "offset " << done.offset << " size " << done.size;
    }
  }
  EXPECT_EQ(pool_->counters().reads, 40u * kSlots);
  EXPECT_TRUE(pool_->quiesce(1'000'000));
}

TEST_P(RealPool, streams_through_a_ring_of_slots_refilled_by_the_threads_that_consume_them) {
  const ScratchFile scratch(kFileBytes);
  ASSERT_NO_FATAL_FAILURE(open(scratch));
  if (IsSkipped()) return;
  constexpr uint32_t kRounds = 300, kChunks = kFileBytes / kSlotBytes;
  const auto fill = [&](uint32_t s) {
    Read next = read(s % kSlots, uint64_t{s % kChunks} * kSlotBytes, kSlotBytes);
    next.fill = s + 1;
    pool_->submit({&next, 1});
  };
  for (uint32_t s = 0; s < kSlots; ++s) fill(s);
  std::atomic<uint32_t> wrong{0};
  const auto consume = [&](uint32_t first) {
    for (uint32_t s = first; s < kRounds; s += 2) {
      if (!pool_->wait(flags_[s % kSlots], s + 1, nullptr, nullptr).ok()) ++wrong;
      const std::byte* slot = arena().data() + size_t{s % kSlots} * kSlotBytes;
      if (std::memcmp(slot, scratch.bytes().data() + size_t{s % kChunks} * kSlotBytes, kSlotBytes) != 0) ++wrong;
      if (s + kSlots < kRounds) fill(s + kSlots);
    }
  };
  static_assert(kSlots % 2 == 0, "each slot is one thread's");
  std::thread other(consume, 1);
  consume(0);
  other.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_P(RealPool, fails_with_a_sentence_when_the_file_was_truncated) {
  const ScratchFile scratch(kFileBytes);
  ASSERT_NO_FATAL_FAILURE(open(scratch));
  if (IsSkipped()) return;
  ASSERT_EQ(::truncate(scratch.path().c_str(), 1 << 20), 0);
  EXPECT_TRUE(bring(read(0, 0, kSlotBytes)).ok());
  const Status status = bring(read(1, 2 << 20, kSlotBytes));
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(), "cannot read " + scratch.path() +
                                  " at offset 2097152 (65536 bytes): the file ends before; " + "it had " +
                                  std::to_string(kFileBytes) + " bytes when it was opened");
}

TEST_P(RealPool, reads_on_when_the_name_is_another_file_since_the_descriptor_is_not) {
  ScratchFile scratch(kFileBytes);
  ASSERT_NO_FATAL_FAILURE(open(scratch));
  if (IsSkipped()) return;
  scratch.replace();
  EXPECT_TRUE(bring(read(0, 0, kSlotBytes)).ok());
  EXPECT_FALSE((*file_)->check_unchanged().ok());
}

TEST_P(RealPool, is_no_faster_than_the_drive_it_imitates) {
  const ScratchFile scratch(kFileBytes);
  PoolParams params;
  params.model = *StorageModel::parse("50MB/s@64K,lat=1ms");
  ASSERT_NO_FATAL_FAILURE(open(scratch, params));
  if (IsSkipped()) return;
  const uint64_t start = now_us();
  std::vector<Read> reads;
  for (uint32_t slot = 0; slot < kSlots; ++slot) reads.push_back(read(slot, uint64_t{slot} * kSlotBytes, kSlotBytes));
  pool_->submit(reads);
  for (const Read& each : reads) ASSERT_TRUE(pool_->wait(*each.flag, each.fill, nullptr, nullptr).ok());
  EXPECT_GE(now_us() - start, uint64_t{kSlots} * kSlotBytes / 50 + 1000);
  EXPECT_GE(pool_->counters().busy_us, uint64_t{kSlots} * kSlotBytes / 50);
}

TEST_P(RealPool, reads_from_tmpfs) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const ScratchFile scratch(kFileBytes, "/dev/shm");
  ASSERT_NO_FATAL_FAILURE(open(scratch));
  if (IsSkipped()) return;
  const Read tail = read(0, (kFileBytes - kSlotBytes) / 4096 * 4096, kSlotBytes);
  ASSERT_TRUE(bring(tail).ok());
  EXPECT_EQ(std::memcmp(tail.buffer, scratch.bytes().data() + tail.offset, tail.needed), 0);
}

TEST_P(RealPool, may_be_destroyed_with_reads_queued_and_in_flight) {
  const ScratchFile scratch(kFileBytes);
  for (int round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(open(scratch));
    if (IsSkipped()) return;
    std::vector<Read> reads;
    for (uint32_t slot = 0; slot < kSlots; ++slot) reads.push_back(read(slot, uint64_t{slot} * kSlotBytes, kSlotBytes));
    pool_->submit(reads);
    pool_.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, RealPool,
                         testing::Values(Setting{"ring", PoolParams::Kind::kRing, true},
                                         Setting{"threads", PoolParams::Kind::kThreads, true},
                                         Setting{"ring_buffered", PoolParams::Kind::kRing, false},
                                         Setting{"threads_buffered", PoolParams::Kind::kThreads, false},
                                         Setting{"ring_of_three_lanes", PoolParams::Kind::kRing, true, 1, 3, 2},
                                         Setting{"two_rings_of_two_lanes", PoolParams::Kind::kRing, true, 2, 2, 4},
                                         Setting{"ring_of_depth_one", PoolParams::Kind::kRing, true, 1, 1, 1}),
                         [](const auto& setting) { return setting.param.name; });

TEST(ReadPool, refuses_parameters_that_make_no_sense) {
  for (const auto change : {+[](PoolParams& p) { p.workers = 0; }, +[](PoolParams& p) { p.lanes = 1000; },
                            +[](PoolParams& p) { p.depth = 0; }, +[](PoolParams& p) { p.capacity = 0; }}) {
    PoolParams params;
    change(params);
    EXPECT_EQ(ReadPool::create({}, {}, params).status().code(), Code::kInvalidArgument);
  }
}

TEST(ReadPool, says_what_it_uses) {
  const ScratchFile scratch(kFileBytes);
  const Result<StorageFile> file = StorageFile::open(scratch.path(), false);
  Result<MappedMemory> memory = MappedMemory::allocate(4 << 20);
  PoolParams params;
  params.kind = PoolParams::Kind::kThreads;
  const Result<std::unique_ptr<ReadPool>> pool =
      ReadPool::create({&*file, 1}, {memory->data(), memory->size_bytes()}, params);
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  const PoolFacts facts = (*pool)->facts();
  EXPECT_EQ(facts.engine, "pread");
  EXPECT_FALSE(facts.direct || facts.registered_buffers || facts.registered_files);
  ASSERT_FALSE(facts.refusals.empty());
  EXPECT_NE(facts.refusals[0].find("page cache"), std::string::npos);
}

}  // namespace
}  // namespace leanstream::io
