#include "io/storage_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace leanstream::io {
namespace {

int64_t modified_ns(const struct stat& st) {
  return int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
}

}  // namespace

Result<StorageFile> StorageFile::open(const std::string& path, bool allow_direct) {
  StorageFile file;
  file.path_ = path;
  file.buffered_fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.buffered_fd_ < 0) return io_error("cannot open " + path, errno);
  struct stat st {};
  if (::fstat(file.buffered_fd_, &st) != 0) return io_error("cannot look at " + path, errno);
  if (!S_ISREG(st.st_mode)) return invalid_argument("cannot read " + path + ": not a regular file");
  file.size_bytes_ = static_cast<uint64_t>(st.st_size);
  file.device_ = st.st_dev;
  file.inode_ = st.st_ino;
  file.modified_ns_ = modified_ns(st);
  // Read-ahead would fetch what nobody asked for, and hold it in the page cache.
  ::posix_fadvise(file.buffered_fd_, 0, 0, POSIX_FADV_RANDOM);
  if (!allow_direct) {
    file.buffered_because_ = "direct I/O is switched off";
  } else {
    file.open_direct();
  }
  return file;
}

// Sets direct_fd_ when the file system takes O_DIRECT at open and at a first read; else buffered_because_.
void StorageFile::open_direct() {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (fd < 0) {
    buffered_because_ = std::string("O_DIRECT is refused at open: ") + std::strerror(errno);
    return;
  }
  struct stat st {};
  if (::fstat(fd, &st) != 0 || st.st_ino != inode_ || st.st_dev != device_) {
    buffered_because_ = "the file was replaced while it was opened";
    ::close(fd);
    return;
  }
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kDirectAlignment, kDirectAlignment),
                                                          &std::free);
  ssize_t got;
  do got = ::pread(fd, block.get(), kDirectAlignment, 0);
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EINVAL) {
    buffered_because_ = std::string("O_DIRECT is refused at the first read: ") + std::strerror(errno);
    ::close(fd);
    return;
  }
  direct_fd_ = fd;  // another error is the drive's, and the reader's to meet
}

StorageFile& StorageFile::operator=(StorageFile&& other) noexcept {
  std::swap(buffered_fd_, other.buffered_fd_);
  std::swap(direct_fd_, other.direct_fd_);
  std::swap(path_, other.path_);
  std::swap(buffered_because_, other.buffered_because_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(modified_ns_, other.modified_ns_);
  return *this;
}

StorageFile::~StorageFile() {
  if (buffered_fd_ >= 0) ::close(buffered_fd_);
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

bool StorageFile::is_same_as(int descriptor) const {
  struct stat other {};
  return ::fstat(descriptor, &other) == 0 && other.st_dev == device_ && other.st_ino == inode_;
}

Status StorageFile::check_unchanged() const {
  const std::string changed = "the file changed while it was in use: " + path_ + ": ";
  struct stat held {};
  if (::fstat(descriptor(), &held) != 0) return io_error("cannot look at " + path_, errno);
  if (static_cast<uint64_t>(held.st_size) != size_bytes_)
    return {Code::kIo,
            changed + "it had " + std::to_string(size_bytes_) + " bytes and now has " + std::to_string(held.st_size)};
  if (modified_ns(held) != modified_ns_) return {Code::kIo, changed + "it was written to"};
  struct stat named {};
  if (::stat(path_.c_str(), &named) != 0) return {Code::kIo, changed + "its name is gone: " + std::strerror(errno)};
  if (named.st_ino != inode_ || named.st_dev != device_) return {Code::kIo, changed + "another file has its name"};
  return {};
}

}  // namespace leanstream::io
