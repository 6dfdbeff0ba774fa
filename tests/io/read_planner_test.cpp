#include "io/read_planner.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace leanstream::io {
namespace {

constexpr PlanLimits kLimits{4096, 64 << 10, 8 << 10};

TEST(PlanReads, widens_an_extent_to_the_alignment) {
  const Extent extent{0, 0, 5000, 100};
  const std::vector<PlannedRead> reads = plan_reads({&extent, 1}, kLimits);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].offset, 4096u);
  EXPECT_EQ(reads[0].size, 4096u);
  EXPECT_EQ(reads[0].needed, 1004u);
}

TEST(PlanReads, merges_neighbours_over_gaps_up_to_the_limit) {
  const Extent extents[] = {{0, 0, 0, 4096}, {0, 1, 4096 + 8192, 4096}, {0, 2, 4 * 4096 + 8193, 10}};
  const std::vector<PlannedRead> reads = plan_reads(extents, kLimits);
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].count, 2u);
  EXPECT_EQ(reads[0].size, 4u * 4096);
  EXPECT_EQ(reads[1].first, 2u);
  EXPECT_EQ(reads[1].count, 1u);
}

TEST(PlanReads, merges_nothing_past_the_largest_read_or_across_files) {
  const Extent extents[] = {{0, 0, 0, 40 << 10}, {0, 1, 40 << 10, 40 << 10}, {1, 2, 80 << 10, 4096}};
  const std::vector<PlannedRead> reads = plan_reads(extents, kLimits);
  ASSERT_EQ(reads.size(), 3u);
  EXPECT_EQ(reads[1].offset, 40u << 10);
  EXPECT_EQ(reads[2].file, 1u);
}

TEST(PlanReads, cuts_a_large_extent_into_reads_of_the_largest_size) {
  const Extent extent{0, 0, 100, 150 << 10};
  const std::vector<PlannedRead> reads = plan_reads({&extent, 1}, kLimits);
  ASSERT_EQ(reads.size(), 3u);
  uint64_t at = 0;
  for (const PlannedRead& read : reads) {
    EXPECT_EQ(read.offset, at);
    EXPECT_LE(read.size, kLimits.max_read_bytes);
    EXPECT_EQ(read.first, 0u);
    at += read.size;
  }
  EXPECT_EQ(reads.back().offset + reads.back().needed, extent.offset + extent.size);
}

TEST(PlanReads, brings_every_wanted_byte_within_its_limits) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Extent> extents;
    uint64_t at = 0;
    for (uint32_t i = 0; i < 60; ++i) {
      at += random() % 20000;
      extents.push_back({i / 30, i, at, 1 + random() % (i % 9 == 0 ? 200000 : 9000)});
      at += extents.back().size;
      if (i == 29) at = 0;
    }
    const std::vector<PlannedRead> reads = plan_reads(extents, kLimits);
    std::vector<uint64_t> covered(extents.size(), 0);
    for (const PlannedRead& read : reads) {
      EXPECT_EQ(read.offset % kLimits.alignment, 0u);
      EXPECT_EQ(read.size % kLimits.alignment, 0u);
      EXPECT_LE(read.size, kLimits.max_read_bytes);
      EXPECT_LE(read.needed, read.size);
      EXPECT_LT(read.size - read.needed, kLimits.alignment);
      for (uint32_t i = read.first; i < read.first + read.count; ++i) {
        EXPECT_EQ(extents[i].file, read.file);
        const uint64_t start = std::max(extents[i].offset, read.offset);
        const uint64_t end = std::min(extents[i].offset + extents[i].size, read.offset + read.needed);
        ASSERT_LT(start, end);
        covered[i] += end - start;
      }
    }
    for (size_t i = 0; i < extents.size(); ++i) EXPECT_EQ(covered[i], extents[i].size);
  }
}

}  // namespace
}  // namespace leanstream::io
