#include "scheduler/streamer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "io/device_pool.h"
#include "tests/io/fake_device.h"
#include "tests/scheduler/streamed_model.h"

namespace leanstream::scheduler {
namespace {

using test::all_logits;
using test::LoadedModel;
using test::ModelFile;
using test::must;
using test::plan_for;
using test::streamable_shape;
using test::StreamedModel;
using test::WrittenModel;
using Logits = std::vector<std::vector<float>>;
using Kind = io::PoolParams::Kind;

const std::vector<int32_t> kTokens = [] {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 72; ++i) tokens.push_back(i * 7919 % 300);
  return tokens;
}();

io::PoolParams pool_of(Kind kind) {
  io::PoolParams params;
  params.kind = kind;
  params.depth = 4;
  params.deadline_us = 5'000'000;
  return params;
}

bool same_bits(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
  return true;
}

Logits resident_logits(const gguf::Model& file, uint32_t threads) {
  const LoadedModel m(file, threads);
  engine::DecoderParams params;
  params.context = 128;
  params.max_batch = 128;
  return all_logits(*m.decoder(params), m.config.n_vocab, kTokens, 7);
}

// --- Exactness ---------------------------------------------------------------------------------------------------

class StreamerOfType : public testing::TestWithParam<WeightType> {};

TEST_P(StreamerOfType, gives_the_bits_of_the_resident_model_for_any_budget_pool_grouping_and_thread_count) {
  const WrittenModel written{ModelFile(streamable_shape(GetParam()))};
  const gguf::Model file = written.open();
  const model::Config config = must(model::Config::from_gguf(file));
  const test::Range range = test::plan_range(file, config);
  const Logits expected = resident_logits(file, 2);
  for (const uint64_t share : {0, 2, 6}) {
    const uint64_t budget = range.least + (range.most - range.least) * share / 8;
    for (const Kind kind : {Kind::kAuto, Kind::kThreads})
      for (const uint32_t threads : {1u, 3u}) {
        const StreamedModel m(file, plan_for(file, config, budget), threads, pool_of(kind));
        ASSERT_TRUE(m.stream->plan().streams());
        const auto decoder = m.decoder(128);
        // Alone and in a crowd: kernels take pieces as they are, or interleaved.
        for (const uint32_t batch : {8u, 72u}) {
          decoder->truncate(0);
          EXPECT_TRUE(same_bits(all_logits(*decoder, config.n_vocab, kTokens, batch), expected))
              << "budget " << budget << ", " << threads << " threads, by " << batch;
        }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StreamerOfType,
                         testing::Values(WeightType::kF16, WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_K,
                                         WeightType::kQ6_K),
                         [](const auto& type) { return std::string(traits(type.param).name); });

// --- Faults ------------------------------------------------------------------------------------------------------

class StreamerTest : public testing::Test {
 protected:
  const WrittenModel written{ModelFile(streamable_shape(WeightType::kF16))};
  const gguf::Model file = written.open();
  const model::Config config = must(model::Config::from_gguf(file));
  const StreamPlan plan = plan_for(file, config, test::plan_range(file, config).least);

  // Reads of byte `offset` do what the drive was told; all others are the file's bytes.
  struct Faulty {
    std::shared_ptr<io::FakeDrive> drive;
    Streamer::OpenPool open_pool;
  };
  Faulty faulty() const {
    std::vector<std::byte> bytes(file.files().front().size_bytes());
    EXPECT_TRUE(file.files().front().read_at(0, bytes).ok());
    auto drive = std::make_shared<io::FakeDrive>(std::move(bytes));
    return {drive, [drive](std::span<const io::StorageFile> files, std::span<std::byte>, const io::PoolParams& params) {
              std::vector<std::unique_ptr<io::Device>> devices;
              devices.push_back(std::make_unique<io::FakeDevice>(drive, params.depth));
              return io::DevicePool::create(files, params, std::move(devices), {});
            }};
  }
  uint64_t middle_piece() const { return plan.pieces[plan.pieces.size() / 2].offset + 1000; }
};

TEST_F(StreamerTest, decodes_one_by_one_with_the_bits_of_the_resident_model) {
  const Logits expected = resident_logits(file, 1);
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  EXPECT_TRUE(same_bits(all_logits(*m.decoder(128), config.n_vocab, kTokens, 1), expected));
}

TEST_F(StreamerTest, counts_each_byte_once_a_pass) {
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  const auto decoder = m.decoder(128);
  static_cast<void>(all_logits(*decoder, config.n_vocab, kTokens, 1));
  const uint64_t before = m.stream->counters().bytes_read;
  decoder->truncate(0);
  static_cast<void>(all_logits(*decoder, config.n_vocab, kTokens, 72));
  const uint64_t pass = m.stream->counters().bytes_read - before;
  // The ends of pieces share blocks, and up to a ring's worth was under way before or is after.
  EXPECT_GT(pass + m.stream->plan().ring_bytes(), plan.streamed_bytes);
  EXPECT_LT(pass, plan.streamed_bytes + 2 * kSlotAlignment * plan.pieces.size() + m.stream->plan().ring_bytes());
}

TEST_F(StreamerTest, a_pass_that_was_stopped_anywhere_leaves_the_next_one_whole) {
  const Logits expected = resident_logits(file, 2);
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  const auto decoder = m.decoder(128);
  for (int polls = 0; polls < 12; ++polls) {
    int left = polls;
    const auto stop = [](void* n) { return (*static_cast<int*>(n))-- <= 0; };
    static_cast<void>(decoder->forward({kTokens.data(), 3}, stop, &left));
    decoder->truncate(0);
    ASSERT_TRUE(same_bits(all_logits(*decoder, config.n_vocab, kTokens, 72), expected)) << polls;
    decoder->truncate(0);
  }
}

TEST_F(StreamerTest, a_stop_is_heeded_while_the_drive_is_silent) {
  const Faulty f = faulty();
  f.drive->hang(middle_piece());
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto), f.open_pool);
  const auto decoder = m.decoder(128);
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  const Status status = decoder->forward(
      {kTokens.data(), 3}, [](void* s) { return static_cast<std::atomic<bool>*>(s)->load(); }, &stop);
  const auto took = std::chrono::steady_clock::now() - begin;
  stopper.join();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_LT(took, std::chrono::milliseconds(1500));
  f.drive->release(middle_piece());
}

TEST_F(StreamerTest, a_drive_that_stalls_is_one_sentence_within_the_deadline) {
  const Faulty f = faulty();
  f.drive->hang(middle_piece());
  io::PoolParams params = pool_of(Kind::kAuto);
  params.deadline_us = 300'000;
  const StreamedModel m(file, plan, 2, params, f.open_pool);
  const auto decoder = m.decoder(128);
  const auto begin = std::chrono::steady_clock::now();
  const Status status = decoder->forward({kTokens.data(), 3}, nullptr, nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(status.code(), Code::kDeadline);
  EXPECT_NE(status.message().find(written.path()), std::string::npos) << status.message();
  // Stays failed, at once.
  EXPECT_EQ(decoder->forward({kTokens.data(), 3}, nullptr, nullptr).code(), Code::kDeadline);
  f.drive->release(middle_piece());
}

TEST_F(StreamerTest, an_error_of_the_drive_is_one_sentence_with_file_and_offset) {
  const Faulty f = faulty();
  f.drive->script(middle_piece(), -EIO);
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto), f.open_pool);
  const auto decoder = m.decoder(128);
  const Status status = decoder->forward({kTokens.data(), 3}, nullptr, nullptr);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("offset"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(written.path()), std::string::npos) << status.message();
  EXPECT_EQ(decoder->position(), 0u);
}

TEST_F(StreamerTest, short_reads_change_nothing) {
  const Faulty f = faulty();
  f.drive->script(middle_piece(), 4096, 3);
  f.drive->script(plan.pieces.front().offset + 100, -EAGAIN, 2);
  f.drive->script(plan.pieces.back().offset + 100, -EINTR, 2);
  const Logits expected = resident_logits(file, 2);
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto), f.open_pool);
  EXPECT_TRUE(same_bits(all_logits(*m.decoder(128), config.n_vocab, kTokens, 7), expected));
}

void expect_changed(StreamedModel& m, const std::string& why) {
  const auto decoder = m.decoder(128);
  const Status status = decoder->forward({kTokens.data(), 3}, nullptr, nullptr);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
}

TEST_F(StreamerTest, a_file_that_shrinks_stops_the_next_token) {
  StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  const auto decoder = m.decoder(128);
  ASSERT_TRUE(decoder->forward({kTokens.data(), 3}, nullptr, nullptr).ok());
  ASSERT_EQ(::truncate(written.path().c_str(), 1 << 20), 0);
  expect_changed(m, "bytes");
}

TEST_F(StreamerTest, a_file_that_is_written_to_stops_the_next_token) {
  StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  const int fd = ::open(written.path().c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "x", 1, 5'000'000), 1);
  ::close(fd);
  expect_changed(m, "written to");
}

TEST_F(StreamerTest, a_file_that_is_replaced_stops_the_next_token) {
  StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  const std::string other = written.path() + ".other";
  ModelFile(streamable_shape(WeightType::kF16)).write(other);
  ASSERT_EQ(::rename(other.c_str(), written.path().c_str()), 0);
  expect_changed(m, "another file");
}

TEST_F(StreamerTest, a_file_that_is_replaced_while_it_is_opened_is_not_streamed) {
  const std::string other = written.path() + ".other";
  ModelFile(streamable_shape(WeightType::kF16)).write(other);
  ASSERT_EQ(::rename(other.c_str(), written.path().c_str()), 0);
  const auto streamer = Streamer::create(file, file.find_tensor("token_embd.weight"), plan, pool_of(Kind::kAuto));
  EXPECT_EQ(streamer.status().code(), Code::kIo);
}

TEST_F(StreamerTest, several_decoders_take_turns) {
  const Logits expected = resident_logits(file, 2);
  const StreamedModel m(file, plan, 2, pool_of(Kind::kAuto));
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      const auto decoder = m.decoder(128);
      good += same_bits(all_logits(*decoder, config.n_vocab, kTokens, static_cast<uint32_t>(5 + i)), expected) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
}

}  // namespace
}  // namespace leanstream::scheduler
