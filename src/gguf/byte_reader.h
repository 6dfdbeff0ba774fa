#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace leanstream::gguf {

// Reads the head of a file front to back, through a buffer. The first failure sticks: from then on every read gives
// zeros and status() says what happened, so a caller checks once per group of reads and before every allocation.
// Single-thread; borrows the file.
class ByteReader {
 public:
  // More than any real head (the largest vocabularies need 20 MB), and a bound on what a hostile one can make us hold.
  static constexpr uint64_t kMaxHeadBytes = uint64_t{256} << 20;

  explicit ByteReader(const File& file);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void fail(Status status);  // keeps the first one

  uint64_t position() const { return buffer_begin_ + buffer_used_; }
  uint64_t remaining() const { return limit_ - position(); }

  void read(std::span<std::byte> out);

  template <typename T>
  T number() {
    T value{};
    read(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  // Fails unless `count` things of at least `min_bytes` each can follow. `what` as in "array of 5 strings".
  bool can_hold(uint64_t count, uint64_t min_bytes, const std::string& what);

  // A string: its length in 64 bits, then its bytes. "" after a failure.
  std::string string();
  // The length alone, checked against what remains.
  uint64_t string_length();

 private:
  void refill();

  const File& file_;
  uint64_t limit_;
  uint64_t buffer_begin_ = 0;  // file offset of buffer_[0]
  size_t buffer_used_ = 0;
  std::vector<std::byte> buffer_;
  Status status_;
};

}  // namespace leanstream::gguf
