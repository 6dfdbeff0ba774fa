#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"

namespace leanstream {

// An open file for positioned reads. Owns the descriptor. Thread-safe: reads carry their own offset.
class File {
 public:
  // Errors: kNotFound, kIo; kInvalidArgument for a directory or another thing without a size.
  static Result<File> open(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }  // at open
  int descriptor() const { return fd_; }

  // Fills `out` from `offset`. Loops over short reads; a file that ends early is kIo with both sizes.
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
  File(int fd, std::string path, uint64_t size_bytes);

  int fd_ = -1;
  std::string path_;
  uint64_t size_bytes_ = 0;
};

// Whether both paths lead to one file, be it through a link. false where either is not there.
bool same_file(const std::string& a, const std::string& b);

// What an unprivileged process may still write to the file system that holds (or would hold) `path`; nothing where the
// system does not tell.
std::optional<uint64_t> free_disk_bytes(const std::string& path);

// A file being written that appears under its name only when complete: written to "<path>.tmp-<pid>", fsynced and
// renamed by commit(). Without commit() nothing is left behind. Single-thread.
class AtomicFileWriter {
 public:
  // All errors name `path`: kIo; kInvalidArgument where something else than a regular file has the name.
  static Result<AtomicFileWriter> create(const std::string& path);

  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&&) = delete;
  ~AtomicFileWriter();

  uint64_t offset() const { return offset_; }      // bytes written so far
  Status write(std::span<const std::byte> bytes);  // kIo at the first failing write (disk full, ...)
  Status pad_to(uint64_t alignment);               // zero bytes up to a multiple of `alignment`
  Status commit();                                 // flush, fsync, rename, fsync the folder

 private:
  AtomicFileWriter(int fd, std::string path, std::string temporary);

  Status flush();

  int fd_ = -1;
  std::string path_;
  std::string temporary_;
  std::string buffer_;
  uint64_t offset_ = 0;
};

}  // namespace leanstream
