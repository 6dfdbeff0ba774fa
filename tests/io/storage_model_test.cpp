#include "io/storage_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace leanstream::io {
namespace {

TEST(StorageModel, parses_the_notation_and_interpolates_over_log_size) {
  const Result<StorageModel> model = StorageModel::parse("2.0GB/s@64K:3.5GB/s@256K,lat=90us");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->latency_us, 90u);
  EXPECT_DOUBLE_EQ(model->bandwidth(1000), 2.0e9);
  EXPECT_DOUBLE_EQ(model->bandwidth(64 << 10), 2.0e9);
  EXPECT_DOUBLE_EQ(model->bandwidth(128 << 10), 2.75e9);  // half way in log(size)
  EXPECT_DOUBLE_EQ(model->bandwidth(1 << 20), 3.5e9);
}

TEST(StorageModel, takes_one_point_without_latency_and_other_units) {
  const Result<StorageModel> model = StorageModel::parse("500MB/s@1M");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->latency_us, 0u);
  EXPECT_DOUBLE_EQ(model->bandwidth(4096), 5e8);
  EXPECT_EQ(StorageModel::parse("1GB/s@4K,lat=2ms")->latency_us, 2000u);
}

TEST(StorageModel, names_the_part_that_makes_no_sense) {
  for (const char* text :
       {"", "2", "2GB/s", "2GB/s@", "2GB/s@0K", "2GB/s@64Q", "0GB/s@64K", "-1GB/s@64K", "nanGB/s@64K", "1e5GB/s@64K",
        "1GB/s@64K:", "1GB/s@64K,", "1GB/s@64K,lat=", "1GB/s@64K,lat=9", "1GB/s@64K,lat=9s", "1GB/s@64K:2GB/s@64K",
        "1GB/s@64K:2GB/s@4K", "9999999GB/s@1K", "1GB/s@99999M"}) {
    const Result<StorageModel> model = StorageModel::parse(text);
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.status().code(), Code::kInvalidArgument) << text;
  }
  EXPECT_NE(StorageModel::parse("1GB/s@64K:2GB/s@4K").status().message().find("2GB/s@4K"), std::string::npos);
}

TEST(Throttle, takes_latency_plus_transfer_when_the_drive_is_idle) {
  Throttle throttle(*StorageModel::parse("1GB/s@100000,lat=90us"));
  EXPECT_EQ(throttle.completion_us(1000, 100000), 1000u + 100 + 90);
  EXPECT_EQ(throttle.completion_us(50000, 100000), 50000u + 100 + 90);
}

TEST(Throttle, moves_no_more_than_the_bandwidth_and_overlaps_latencies) {
  Throttle throttle(*StorageModel::parse("1GB/s@100000,lat=90us"));
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) last = throttle.completion_us(0, 100000);
  EXPECT_EQ(last, 100u * 100 + 90);
}

}  // namespace
}  // namespace leanstream::io
