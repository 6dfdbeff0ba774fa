#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/checked.h"

namespace leanstream {
namespace {

// Linux moves at most about 2 GiB in one call.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;
constexpr size_t kWriteBufferBytes = size_t{1} << 20;

Status write_all(int fd, const std::string& path, const std::byte* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, std::min(size, kMaxTransferBytes));
    if (n < 0) {
      if (errno == EINTR) continue;
      return io_error("cannot write " + path, errno);
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
  return {};
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<File> File::open(const std::string& path) {
  // O_NONBLOCK: a FIFO is refused below instead of waiting for its writer; regular files do not mind.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error("cannot open " + path, errno);
  struct stat st {};
  if (::fstat(fd, &st) != 0) {
    const int error_number = errno;
    ::close(fd);
    return io_error("cannot look at " + path, error_number);
  }
  if (!S_ISREG(st.st_mode)) {
    ::close(fd);
    return invalid_argument("cannot read " + path + ": not a regular file");
  }
  return File(fd, path, static_cast<uint64_t>(st.st_size));
}

File::File(int fd, std::string path, uint64_t size_bytes) : fd_(fd), path_(std::move(path)), size_bytes_(size_bytes) {}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), size_bytes_(other.size_bytes_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Status File::read_at(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min(out.size() - done, kMaxTransferBytes);
    const ssize_t n = ::pread(fd_, out.data() + done, want, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) continue;
      return io_error("cannot read " + path_ + " at offset " + std::to_string(offset + done), errno);
    }
    if (n == 0)
      return {Code::kIo, "cannot read " + path_ + ": it ends at byte " + std::to_string(offset + done) + ", and " +
                             std::to_string(out.size() - done) + " more were expected"};
    done += static_cast<size_t>(n);
  }
  return {};
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  if (::stat(a.c_str(), &one) != 0 || ::stat(b.c_str(), &other) != 0) return false;
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

std::optional<uint64_t> free_disk_bytes(const std::string& path) {
  struct statvfs st {};
  if (::statvfs(folder_of(path).c_str(), &st) != 0) return std::nullopt;
  return uint64_t{st.f_bavail} * st.f_frsize;
}

Result<AtomicFileWriter> AtomicFileWriter::create(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return invalid_argument("cannot write " + path + ": it exists and is not a regular file");
  std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return io_error("cannot create " + path, errno);
  return AtomicFileWriter(fd, path, std::move(temporary));
}

AtomicFileWriter::AtomicFileWriter(int fd, std::string path, std::string temporary)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {
  buffer_.reserve(kWriteBufferBytes);
}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      buffer_(std::move(other.buffer_)),
      offset_(other.offset_) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFileWriter::write(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  if (buffer_.size() + bytes.size() > kWriteBufferBytes) {
    if (Status s = flush(); !s.ok()) return s;
    if (bytes.size() >= kWriteBufferBytes) return write_all(fd_, path_, bytes.data(), bytes.size());
  }
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {};
}

Status AtomicFileWriter::pad_to(uint64_t alignment) {
  const std::string zeros(align_up(offset_, alignment) - offset_, '\0');
  return write(std::as_bytes(std::span(zeros)));
}

Status AtomicFileWriter::flush() {
  const Status status = write_all(fd_, path_, reinterpret_cast<const std::byte*>(buffer_.data()), buffer_.size());
  buffer_.clear();
  return status;
}

Status AtomicFileWriter::commit() {
  if (Status s = flush(); !s.ok()) return s;
  if (::fsync(fd_) != 0) return io_error("cannot write " + path_, errno);
  // NFS and quotas report a failed write only here.
  if (::close(std::exchange(fd_, -1)) != 0) return io_error("cannot write " + path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return io_error("cannot give " + path_ + " its name, from " + temporary_, errno);
  temporary_.clear();
  // The file is complete under its name; making the name itself durable is best effort.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

}  // namespace leanstream
