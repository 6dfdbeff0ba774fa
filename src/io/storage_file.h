#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace leanstream::io {

// A file opened for streaming: with O_DIRECT where the file system allows it, tried with a real read; else buffered.
// Beside a direct descriptor it holds a buffered twin, for the reads that O_DIRECT refuses (some file systems: the
// unaligned tail). Remembers what it was at open: size, modification time, inode. Owns the descriptors. Immutable,
// thread-safe.
class StorageFile {
 public:
  // allow_direct = false forces buffered reads. Errors: kNotFound, kIo; kInvalidArgument for what is no regular file.
  static Result<StorageFile> open(const std::string& path, bool allow_direct = true);

  StorageFile(StorageFile&& other) noexcept { *this = std::move(other); }
  StorageFile& operator=(StorageFile&& other) noexcept;
  ~StorageFile();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  bool direct() const { return direct_fd_ >= 0; }
  uint32_t alignment() const { return direct() ? kDirectAlignment : 1; }  // bytes, of offsets, sizes and buffers
  int descriptor() const { return direct() ? direct_fd_ : buffered_fd_; }
  int buffered_descriptor() const { return buffered_fd_; }
  const std::string& buffered_because() const { return buffered_because_; }  // "" when direct

  // Whether a descriptor, opened by whomever, is of this very file.
  bool is_same_as(int descriptor) const;

  // kIo naming what changed when the file was truncated, rewritten, replaced or removed since open(). One fstat and one
  // stat.
  Status check_unchanged() const;

  static constexpr uint32_t kDirectAlignment = 4096;  // what drives with 512-byte and with 4-KiB blocks both take

 private:
  StorageFile() = default;
  void open_direct();

  int buffered_fd_ = -1, direct_fd_ = -1;
  std::string path_, buffered_because_;
  uint64_t size_bytes_ = 0, device_ = 0, inode_ = 0;
  int64_t modified_ns_ = 0;
};

}  // namespace leanstream::io
