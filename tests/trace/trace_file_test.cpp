// Writing and reading whole files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "trace/exact_trace.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"
#include "trace_bytes.h"

namespace leanstream::trace {
namespace {

using ::testing::HasSubstr;

void expect_equal(const Trace& trace, const std::vector<std::vector<std::vector<bool>>>& sets, size_t tokens) {
  ASSERT_EQ(trace.tokens, tokens);
  const size_t layers = trace.header.layers.size();
  ASSERT_EQ(trace.steps.count(), tokens * layers);
  for (size_t token = 0; token < tokens; ++token) {
    cache::Piece first = 0;
    for (size_t layer = 0; layer < layers; ++layer) {
      std::vector<cache::Piece> expected;
      const auto& set = sets[token][layer];
      for (size_t i = 0; i < set.size(); ++i)
        if (set[i]) expected.push_back(first + static_cast<cache::Piece>(i));
      first += static_cast<cache::Piece>(set.size());
      const auto step = trace.steps.step(token * layers + layer);
      ASSERT_EQ(std::vector<cache::Piece>(step.begin(), step.end()), expected) << token << " " << layer;
    }
  }
}

TEST(TraceFile, gives_back_every_set) {
  const ScratchPath scratch("round-trip");
  Header header = small_header();
  header.layers.push_back({{64, 1}});
  header.layers.push_back({{65, 1}});
  header.layers.push_back({{1000, 1}});
  const auto sets = random_sets(header, 300, 1);
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), header);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ASSERT_TRUE(write_sets(*writer, sets).ok());
  EXPECT_EQ(writer->tokens(), 300u);
  EXPECT_FALSE(std::ifstream(scratch.path()).good()) << "before it is complete";
  ASSERT_TRUE(writer->commit().ok());
  const Result<Trace> trace = read_trace(scratch.path());
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_TRUE(trace->complete);
  expect_equal(*trace, sets, 300);
}

TEST(TraceFile, of_no_tokens_is_a_trace) {
  const ScratchPath scratch("no-tokens");
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), small_header());
  ASSERT_TRUE(writer.ok() && writer->commit().ok());
  const Result<Trace> trace = read_trace(scratch.path());
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_TRUE(trace->complete);
  EXPECT_EQ(trace->tokens, 0u);
}

TEST(TraceFile, never_takes_more_bytes_than_bitmaps_do) {
  const ScratchPath scratch("compact");
  const Header header = small_header();
  const auto sets = random_sets(header, 200, 2);
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), header);
  ASSERT_TRUE(writer.ok() && write_sets(*writer, sets).ok() && writer->commit().ok());
  const size_t per_token = 1 + (1 + 13) + (1 + 1) + 1 + kChecksumBytes;
  EXPECT_LE(file_bytes(scratch.path()).size(), 100 + 200 * per_token);
}

TEST(TraceFile, without_commit_is_not_there) {
  const ScratchPath scratch("uncommitted");
  {
    Result<TraceWriter> writer = TraceWriter::create(scratch.path(), small_header());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(write_sets(*writer, random_sets(small_header(), 5, 1)).ok());
  }
  EXPECT_FALSE(std::ifstream(scratch.path()).good());
  EXPECT_FALSE(std::ifstream(scratch.temporary()).good());
}

// What a killed process leaves behind: whole buffers, cut anywhere.
TEST(TraceFile, cut_anywhere_gives_the_tokens_before_the_cut) {
  const ScratchPath scratch("cut");
  const Header header = small_header();
  const auto sets = random_sets(header, 20, 3);
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), header);
  ASSERT_TRUE(writer.ok() && write_sets(*writer, sets).ok() && writer->commit().ok());
  const std::string whole = file_bytes(scratch.path());
  size_t readable = 0, most = 0;
  for (size_t size = 1; size < whole.size(); ++size) {
    std::ofstream(scratch.path(), std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    const Result<Trace> trace = read_trace(scratch.path());
    if (!trace.ok()) {
      EXPECT_EQ(readable, 0u) << "unreadable at " << size << " bytes, readable before";
      EXPECT_THAT(trace.status().message(), HasSubstr("cannot read the trace " + scratch.path()));
      continue;
    }
    ++readable;
    EXPECT_FALSE(trace->complete);
    EXPECT_GE(trace->tokens, most);
    most = trace->tokens;
    expect_equal(*trace, sets, trace->tokens);
  }
  EXPECT_EQ(most, 20u);
}

TEST(TraceFile, keeps_to_what_memory_may_hold) {
  const ScratchPath scratch("large");
  Header header = small_header();
  Result<TraceWriter> writer = TraceWriter::create(scratch.path(), header);
  ASSERT_TRUE(writer.ok());
  for (int token = 0; token < 10; ++token) {
    for (int layer = 0; layer < 3; ++layer) writer->add_whole_layer();
    ASSERT_TRUE(writer->end_token().ok());
  }
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_TRUE(read_trace(scratch.path(), 1070).ok());
  const Result<Trace> trace = read_trace(scratch.path(), 1069);
  EXPECT_EQ(trace.status().code(), Code::kUnsupported);
  EXPECT_THAT(trace.status().message(), HasSubstr("more than 1069 pieces"));
}

TEST(TraceFile, says_what_is_not_there_or_empty) {
  const ScratchPath scratch("empty");
  EXPECT_EQ(read_trace(scratch.path()).status().code(), Code::kNotFound);
  std::ofstream(scratch.path()).close();
  EXPECT_THAT(read_trace(scratch.path()).status().message(), HasSubstr("it is empty"));
}

// A limit on the file's size stands in for a full disk.
TEST(TraceFile, says_once_that_the_disk_is_full_and_leaves_nothing) {
  const ScratchPath scratch("full");
  Header header;
  header.layers = {{{1u << 20, 1}}};
  std::vector<uint64_t> bitmap((1u << 20) / 64, 0x5555555555555555);
  rlimit old_limit = {};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {3u << 20, old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  {
    Result<TraceWriter> writer = TraceWriter::create(scratch.path(), header);
    ASSERT_TRUE(writer.ok());
    Status status;
    for (int token = 0; token < 100 && status.ok(); ++token) {
      writer->add_layer(bitmap);
      status = writer->end_token();
    }
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_THAT(status.message(), HasSubstr(scratch.path()));
    writer->add_layer(bitmap);
    EXPECT_EQ(writer->end_token().message(), status.message());
    EXPECT_EQ(writer->commit().message(), status.message());
  }
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(std::ifstream(scratch.path()).good());
  EXPECT_FALSE(std::ifstream(scratch.temporary()).good());
}

TEST(ExactTrace, demands_everything_in_order) {
  const Trace trace = exact_trace(small_header(), 3);
  EXPECT_EQ(trace.steps.count(), 9u);
  EXPECT_EQ(trace.steps.all().size(), 321u);
  EXPECT_EQ(trace.steps.step(4).front(), 100u);
  EXPECT_EQ(trace.steps.step(4).back(), 106u);
  EXPECT_TRUE(trace.steps.step(5).empty());
}

}  // namespace
}  // namespace leanstream::trace
