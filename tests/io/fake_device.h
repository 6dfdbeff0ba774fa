#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "io/clock.h"
#include "io/device.h"

namespace leanstream::io {

// A drive in memory that misbehaves as told, for tests of whatever stands on a pool. Thread-safe: tests give orders
// while a worker reads. Reads of any descriptor see the same bytes.
class FakeDrive {
 public:
  explicit FakeDrive(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  // The next `times` reads that contain byte `offset` give `result`: -errno, or a number of bytes (then that many
  // come).
  void script(uint64_t offset, int32_t result, int times = 1) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < times; ++i) scripts_[offset].push_back(result);
  }
  // Reads that contain byte `offset` never come back, until release() of that offset.
  void hang(uint64_t offset) {
    const std::lock_guard lock(mutex_);
    hangs_.insert(offset);
  }
  void release(uint64_t offset) {
    const std::lock_guard lock(mutex_);
    hangs_.erase(offset);
    changed_.notify_all();
  }

  // Offsets in the order of issue.
  std::vector<uint64_t> issued() const {
    const std::lock_guard lock(mutex_);
    return issued_;
  }
  std::vector<uint32_t> cancelled() const {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }
  // false: there were not so many within ten seconds.
  bool wait_until_issued(size_t count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return issued_.size() >= count; });
  }

 private:
  friend class FakeDevice;

  static bool contains(const DeviceRead& read, uint64_t offset) {
    return offset >= read.offset && offset < read.offset + read.size;
  }
  bool hangs(const DeviceRead& read) const {
    return std::any_of(hangs_.begin(), hangs_.end(), [&](uint64_t offset) { return contains(read, offset); });
  }
  int32_t serve(const DeviceRead& read) {
    int32_t result = static_cast<int32_t>(read.size);
    for (auto& [offset, results] : scripts_)
      if (contains(read, offset) && !results.empty()) {
        result = results.front();
        results.erase(results.begin());
        break;
      }
    if (result <= 0) return result;
    const uint64_t there = read.offset < bytes_.size() ? bytes_.size() - read.offset : 0;
    const uint64_t n = std::min<uint64_t>({static_cast<uint64_t>(result), read.size, there});
    std::memcpy(read.buffer, bytes_.data() + read.offset, n);
    return static_cast<int32_t>(n);
  }

  const std::vector<std::byte> bytes_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<uint64_t, std::vector<int32_t>> scripts_;
  std::set<uint64_t> hangs_;
  std::vector<uint64_t> issued_;
  std::vector<uint32_t> cancelled_;
};

class FakeDevice final : public Device {
 public:
  FakeDevice(std::shared_ptr<FakeDrive> drive, uint32_t depth) : drive_(std::move(drive)), depth_(depth) {}

  uint32_t depth() const override { return depth_; }

  void issue(const DeviceRead& read) override {
    const std::lock_guard lock(drive_->mutex_);
    reading_.push_back(read);
    drive_->issued_.push_back(read.offset);
    drive_->changed_.notify_all();
  }

  Status collect(uint64_t timeout_us, std::vector<DeviceResult>* results) override {
    std::unique_lock lock(drive_->mutex_);
    const auto something = [&] {
      return woken_ || std::any_of(reading_.begin(), reading_.end(), [&](const auto& r) { return !drive_->hangs(r); });
    };
    // Ten minutes for "never": some libraries overflow on more.
    const auto timeout = std::chrono::microseconds(std::min<uint64_t>(timeout_us, 600'000'000));
    drive_->changed_.wait_for(lock, timeout, something);
    woken_ = false;
    std::vector<DeviceRead> still;
    for (const DeviceRead& read : reading_) {
      if (drive_->hangs(read)) {
        still.push_back(read);
      } else {
        results->push_back({read.id, drive_->serve(read)});
      }
    }
    reading_ = still;
    return {};
  }

  void cancel(uint32_t id) override {
    const std::lock_guard lock(drive_->mutex_);
    drive_->cancelled_.push_back(id);
  }

  void wake() override {
    const std::lock_guard lock(drive_->mutex_);
    woken_ = true;
    drive_->changed_.notify_all();
  }

 private:
  const std::shared_ptr<FakeDrive> drive_;
  const uint32_t depth_;
  std::vector<DeviceRead> reading_;  // guarded by the drive's mutex
  bool woken_ = false;               // likewise
};

}  // namespace leanstream::io
