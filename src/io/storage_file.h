#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace leanstream::io {

// A file opened for streaming: with O_DIRECT where the file system allows it, tried with a real read; else buffered, and
// read pages are dropped from the page cache behind us so that they do not count against a memory limit.
// Remembers what it was at open: size, modification time, inode. Owns the descriptor. Immutable, thread-safe.
class StorageFile {
 public:
  // allow_direct = false forces buffered reads. Errors: kNotFound, kIo.
  static Result<StorageFile> open(const std::string& path, bool allow_direct = true);

  StorageFile(StorageFile&& other) noexcept;
  StorageFile& operator=(StorageFile&& other) noexcept;
  ~StorageFile();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  bool direct() const { return direct_; }
  uint32_t alignment() const { return alignment_; }  // bytes, of offsets, sizes and buffers; 4096 when direct
  int descriptor() const { return fd_; }
  const std::string& buffered_because() const { return buffered_because_; }  // "" when direct

  // kIo naming what changed when the file was truncated, rewritten or replaced since open(). One fstat and one stat.
  Status check_unchanged() const;

 private:
  StorageFile() = default;
  int fd_ = -1;
  std::string path_, buffered_because_;
  uint64_t size_bytes_ = 0, device_ = 0, inode_ = 0;
  int64_t modified_ns_ = 0;
  bool direct_ = false;
  uint32_t alignment_ = 1;
};

}  // namespace leanstream::io
