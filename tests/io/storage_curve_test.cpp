#include "io/storage_curve.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/memory.h"
#include "tests/io/scratch_file.h"

namespace leanstream::io {
namespace {

StorageCurve make_curve() {
  StorageCurve curve;
  curve.device = "a drive";
  curve.measured_unix_s = 12345;
  curve.points = {{16 << 10, 1, 0.2e9},   {64 << 10, 1, 0.8e9}, {16 << 10, 16, 1.0e9},  {64 << 10, 16, 3.0e9},
                  {256 << 10, 16, 4.9e9}, {1 << 20, 16, 5.0e9}, {256 << 10, 32, 4.95e9}};
  return curve;
}

TEST(StorageCurve, interpolates_over_log_size_at_the_nearest_depth) {
  const StorageCurve curve = make_curve();
  EXPECT_DOUBLE_EQ(curve.bandwidth(64 << 10, 16), 3.0e9);
  EXPECT_DOUBLE_EQ(curve.bandwidth(32 << 10, 16), 2.0e9);
  EXPECT_DOUBLE_EQ(curve.bandwidth(4096, 1), 0.2e9);
  EXPECT_DOUBLE_EQ(curve.bandwidth(8 << 20, 12), 5.0e9);  // 12 is nearer to 16 than to 1
  EXPECT_DOUBLE_EQ(curve.bandwidth(32 << 10, 3), 0.5e9);  // 3 is nearer to 1
  EXPECT_EQ(StorageCurve{}.bandwidth(4096, 1), 0);
}

TEST(StorageCurve, has_its_knee_at_the_least_size_and_depth_that_are_nearly_best) {
  const StorageCurve::Point knee = make_curve().knee(0.97);
  EXPECT_EQ(knee.size_bytes, 256u << 10);
  EXPECT_EQ(knee.depth, 16u);
  EXPECT_EQ(make_curve().knee(1.0).size_bytes, 1u << 20);
}

TEST(StorageCurve, survives_json) {
  const StorageCurve curve = make_curve();
  const Result<StorageCurve> back = StorageCurve::from_json(curve.to_json());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->device, curve.device);
  EXPECT_EQ(back->measured_unix_s, curve.measured_unix_s);
  ASSERT_EQ(back->points.size(), curve.points.size());
  for (const StorageCurve::Point& point : curve.points)
    EXPECT_DOUBLE_EQ(back->bandwidth(point.size_bytes, point.depth), point.bytes_per_s);
}

TEST(StorageCurve, refuses_json_that_is_no_curve) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"device":"d"})", R"({"device":"d","measured_unix_s":1,"points":[]})",
        R"({"device":1,"measured_unix_s":1,"points":[{"size_bytes":1,"depth":1,"bytes_per_s":1}]})",
        R"({"device":"d","measured_unix_s":1,"points":[1]})",
        R"({"device":"d","measured_unix_s":1,"points":[{"size_bytes":0,"depth":1,"bytes_per_s":1}]})",
        R"({"device":"d","measured_unix_s":1,"points":[{"size_bytes":99999999999,"depth":1,"bytes_per_s":1}]})",
        R"({"device":"d","measured_unix_s":1,"points":[{"size_bytes":1,"depth":1,"bytes_per_s":-1}]})"})
    EXPECT_EQ(StorageCurve::from_json(text).status().code(), Code::kMalformed) << text;
}

class MeasuredCurve : public testing::Test {
 protected:
  MeasuredCurve()
      : scratch_(6 << 20), file_(StorageFile::open(scratch_.path())), memory_(MappedMemory::allocate(4 << 20)) {}
  ~MeasuredCurve() override { std::filesystem::remove_all(scratch_.path() + "-state"); }

  std::span<std::byte> arena() { return {memory_->data(), memory_->size_bytes()}; }

  ScratchFile scratch_;
  Result<StorageFile> file_;
  Result<MappedMemory> memory_;
  PoolParams params_;
  const std::string folder_ = scratch_.path() + "-state/of/this/test";
};

TEST_F(MeasuredCurve, leaves_out_what_does_not_fit_the_memory) {
  const Result<StorageCurve> curve = measure_storage(*file_, arena(), params_, 50);
  ASSERT_TRUE(curve.ok()) << curve.status().message();
  for (const StorageCurve::Point& point : curve->points) {
    EXPECT_LE(uint64_t{point.size_bytes} * point.depth, arena().size());
    EXPECT_GT(point.bytes_per_s, 0);
  }
  EXPECT_EQ(measure_storage(*file_, arena().first(4096), params_, 50).status().code(), Code::kInvalidArgument);
}

TEST_F(MeasuredCurve, of_an_imitated_drive_is_that_drive) {
  params_.model = *StorageModel::parse("20MB/s@64K");
  const Result<StorageCurve> curve = measure_storage(*file_, arena().first(512 << 10), params_, 400);
  ASSERT_TRUE(curve.ok()) << curve.status().message();
  // Never faster; how much slower depends on how busy the machine is. A window begins with an idle drive.
  for (const StorageCurve::Point& point : curve->points) EXPECT_LT(point.bytes_per_s, 20.5e6);
}

TEST_F(MeasuredCurve, is_kept_and_taken_from_where_it_is_kept) {
  const Result<StorageCurve> measured = load_or_measure(folder_, *file_, arena(), params_);
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  std::filesystem::path kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) kept = entry.path();
  EXPECT_EQ(kept.filename().string().rfind("storage-", 0), 0u);

  // A curve of another drive, and one that is no curve, are measured anew.
  for (const std::string& text : {make_curve().to_json(), std::string("no curve")}) {
    std::ofstream(kept) << text;
    const Result<StorageCurve> again = load_or_measure(folder_, *file_, arena(), params_);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->device, measured->device);
    EXPECT_GT(again->measured_unix_s, 12345);
  }
  // So is one that the drive no longer follows.
  StorageCurve slow = *measured;
  slow.measured_unix_s -= 3600;
  for (StorageCurve::Point& point : slow.points) point.bytes_per_s /= 1000;
  std::ofstream(kept) << slow.to_json();
  EXPECT_GE(load_or_measure(folder_, *file_, arena(), params_)->measured_unix_s, measured->measured_unix_s);
}

TEST_F(MeasuredCurve, that_cannot_be_kept_is_a_log_line) {
  std::ofstream(scratch_.path() + "-state") << "a file where the folder should be";
  std::string log;
  params_.log = {[](std::string_view line, void* user) { *static_cast<std::string*>(user) += line; }, &log};
  EXPECT_TRUE(load_or_measure(folder_, *file_, arena(), params_).ok());
  EXPECT_NE(log.find("not kept"), std::string::npos) << log;
  std::filesystem::remove(scratch_.path() + "-state");
}

}  // namespace
}  // namespace leanstream::io
