#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "io/clock.h"
#include "io/storage_curve.h"

namespace leanstream::io {
namespace {

constexpr size_t kMostStateBytes = size_t{64} << 10;  // many times what a curve takes
constexpr uint32_t kSizes[] = {16 << 10,  32 << 10, 64 << 10, 128 << 10, 256 << 10,
                               512 << 10, 1 << 20,  2 << 20,  4 << 20};
constexpr uint32_t kDepths[] = {1, 2, 4, 8, 16, 32};
constexpr uint32_t kMaxDepth = 32;
// Beyond this, reads only queue: it is a millisecond's worth at 16 GB/s, and longer on slower drives.
constexpr uint64_t kMaxInFlightBytes = 16 << 20;
// Disturbance only slows reads down: the better of two passes, apart in time, is nearer to the drive.
constexpr uint32_t kPasses = 2;
constexpr uint32_t kMeasureMs = 1000, kCheckMs = 60;
constexpr int64_t kKeepSeconds = int64_t{30} * 24 * 3600;
constexpr double kDrift = 0.25;

// Keeps `depth` reads of one size in flight at random places of a file.
class RandomReads {
 public:
  RandomReads(std::unique_ptr<ReadPool> pool, const StorageFile& file, std::span<std::byte> arena)
      : file_(file), arena_(arena), flags_(kMaxDepth), pool_(std::move(pool)) {}

  bool fits(uint32_t size_bytes, uint32_t depth) const {
    return uint64_t{size_bytes} * depth <= std::min<uint64_t>(arena_.size(), kMaxInFlightBytes) &&
           size_bytes <= file_.size_bytes();
  }

  // Bandwidth over about `budget_us`, but at least two reads per place in flight.
  Result<double> measure(uint32_t size_bytes, uint32_t depth, uint64_t budget_us) {
    const uint64_t start = now_us();
    uint64_t arrived = 0;
    for (uint32_t i = 0; i < depth; ++i) submit(i, size_bytes);
    // Reads of one size complete nearly in order, so waiting for them in order keeps the depth.
    for (bool more = true; more;) {
      more = now_us() - start < budget_us || arrived < depth;
      for (uint32_t i = 0; i < depth; ++i) {
        if (Status status = pool_->wait(flags_[i], fill_, nullptr, nullptr); !status.ok()) return status;
        ++arrived;
        if (more) submit_next(i, size_bytes);
      }
      if (more) ++fill_;
    }
    ++fill_;
    return double(arrived) * size_bytes * 1e6 / double(std::max<uint64_t>(now_us() - start, 1));
  }

 private:
  void submit(uint32_t i, uint32_t size_bytes) { submit_with(i, size_bytes, fill_); }
  void submit_next(uint32_t i, uint32_t size_bytes) { submit_with(i, size_bytes, fill_ + 1); }
  void submit_with(uint32_t i, uint32_t size_bytes, uint32_t fill) {
    Read read;
    read.size = size_bytes;
    read.offset = random_offset(size_bytes);
    read.buffer = arena_.data() + size_t{i} * size_bytes;
    read.flag = &flags_[i];
    read.fill = fill;
    pool_->submit({&read, 1});
  }

  uint64_t random_offset(uint32_t size_bytes) {
    constexpr uint64_t kBlock = StorageFile::kDirectAlignment;
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator; its high bits are good
    return (state_ >> 20) % ((file_.size_bytes() - size_bytes) / kBlock + 1) * kBlock;
  }

  const StorageFile& file_;
  const std::span<std::byte> arena_;
  std::vector<ArrivalFlag> flags_;  // outlive the pool
  const std::unique_ptr<ReadPool> pool_;
  uint32_t fill_ = 1;
  uint64_t state_ = now_us();
};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

struct DeviceName {
  std::string key;   // for a file name
  std::string text;  // changes with the drive
};

DeviceName name_device(const StorageFile& file) {
  struct stat st {};
  struct statfs fs {};
  ::fstat(file.descriptor(), &st);
  ::fstatfs(file.descriptor(), &fs);
  const std::string numbers = std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
  char type[32];
  std::snprintf(type, sizeof type, "%lx", static_cast<unsigned long>(fs.f_type));
  const std::string block = "/sys/dev/block/" + numbers;
  std::string model = first_line(block + "/device/model");
  if (model.empty()) model = first_line(block + "/../device/model");  // of a partition
  return {std::to_string(major(st.st_dev)) + "-" + std::to_string(minor(st.st_dev)),
          std::string("file system ") + type + " on block device " + numbers + ", model \"" + model + "\", " +
              first_line(block + "/size") + " sectors" + (file.direct() ? "" : ", buffered")};
}

PoolParams deep_enough(PoolParams params) {
  params.depth = std::max(params.depth, kMaxDepth);
  return params;
}

// The kept curve, if it is of this drive and not old.
std::optional<StorageCurve> load(const std::string& path, const DeviceName& device) {
  // Whatever stands under the name: a folder, a pipe or a device is nothing that we kept.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kMostStateBytes)
    return std::nullopt;
  std::ifstream file(path);
  std::string text(kMostStateBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  Result<StorageCurve> curve = StorageCurve::from_json(text);
  const int64_t now = std::time(nullptr);
  if (!curve.ok() || curve->device != device.text) return std::nullopt;
  if (now - curve->measured_unix_s > kKeepSeconds || curve->measured_unix_s > now) return std::nullopt;
  return *std::move(curve);
}

Status keep(const StorageCurve& curve, const std::string& folder, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return io_error("cannot make the folder " + folder, error.value());
  Result<AtomicFileWriter> writer = AtomicFileWriter::create(path);
  if (!writer.ok()) return writer.status();
  const std::string text = curve.to_json();
  if (Status status = writer->write(std::as_bytes(std::span(text))); !status.ok()) return status;
  return writer->commit();
}

// Whether the drive is about as fast as the curve says, at the knee.
Result<bool> still_true(const StorageCurve& curve, const StorageFile& file, std::span<std::byte> arena,
                        const PoolParams& params) {
  Result<std::unique_ptr<ReadPool>> pool = ReadPool::create({&file, 1}, arena, deep_enough(params));
  if (!pool.ok()) return pool.status();
  RandomReads reads(*std::move(pool), file, arena);
  const StorageCurve::Point point = curve.knee(0.97);
  if (point.depth > kMaxDepth || !reads.fits(point.size_bytes, point.depth)) return false;
  const Result<double> now = reads.measure(point.size_bytes, point.depth, kCheckMs * 1000);
  if (!now.ok()) return now.status();
  return *now > (1 - kDrift) * point.bytes_per_s && *now < (1 + kDrift) * point.bytes_per_s;
}

}  // namespace

Result<StorageCurve> measure_storage(const StorageFile& file, std::span<std::byte> arena, const PoolParams& params,
                                     uint32_t budget_ms, StopHook stop) {
  Result<std::unique_ptr<ReadPool>> pool = ReadPool::create({&file, 1}, arena, deep_enough(params));
  if (!pool.ok()) return pool.status();
  RandomReads reads(*std::move(pool), file, arena);
  StorageCurve curve;
  curve.device = name_device(file).text;
  curve.measured_unix_s = std::time(nullptr);
  for (const uint32_t depth : kDepths)
    for (const uint32_t size : kSizes)
      if (reads.fits(size, depth)) curve.points.push_back({size, depth, 0});
  if (curve.points.empty())
    return invalid_argument("cannot measure the drive: " + file.path() +
                            ": the file or the memory for it is too small");
  const uint64_t budget_us = uint64_t{budget_ms} * 1000 / (kPasses * curve.points.size());
  for (uint32_t pass = 0; pass < kPasses; ++pass)
    for (StorageCurve::Point& point : curve.points) {
      if (stop.poll != nullptr && stop.poll(stop.user)) return cancelled("measuring the drive was cancelled");
      const Result<double> bytes_per_s = reads.measure(point.size_bytes, point.depth, budget_us);
      if (!bytes_per_s.ok()) return bytes_per_s.status();
      point.bytes_per_s = std::max(point.bytes_per_s, *bytes_per_s);
    }
  return curve;
}

Result<StorageCurve> load_or_measure(const std::string& state_folder, const StorageFile& file,
                                     std::span<std::byte> arena, const PoolParams& params, StopHook stop) {
  if (params.model) return measure_storage(file, arena, params, kMeasureMs, stop);
  const DeviceName device = name_device(file);
  const std::string path = state_folder + "/storage-" + device.key + ".json";
  if (std::optional<StorageCurve> kept = load(path, device)) {
    const Result<bool> same = still_true(*kept, file, arena, params);
    if (!same.ok()) return same.status();
    if (*same) return *std::move(kept);
  }
  Result<StorageCurve> curve = measure_storage(file, arena, params, kMeasureMs, stop);
  if (!curve.ok()) return curve;
  const Status kept = keep(*curve, state_folder, path);
  if (!kept.ok() && params.log.write != nullptr)
    params.log.write("the storage curve is not kept: " + kept.message(), params.log.user);
  return curve;
}

}  // namespace leanstream::io
