#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace leanstream::io {

// A file of reproducible bytes that is gone with the object. In the working folder (a build folder: on a real drive),
// or where `folder` says.
class ScratchFile {
 public:
  explicit ScratchFile(size_t size_bytes, const std::string& folder = ".") : bytes_(size_bytes) {
    static std::atomic<int> count{0};
    path_ = folder + "/scratch-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    uint64_t state = size_bytes + 1;
    for (std::byte& byte : bytes_) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::byte>(state >> 56);
    }
    write(bytes_);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  // The file anew under the same name, as another inode.
  void replace() {
    ::unlink(path_.c_str());
    write(bytes_);
  }

 private:
  void write(const std::vector<std::byte>& bytes) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) throw std::runtime_error("cannot make " + path_ + ": " + std::strerror(errno));
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
      if (n <= 0) throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
      at += static_cast<size_t>(n);
    }
    ::fsync(fd);
    ::close(fd);
  }

  std::string path_;
  std::vector<std::byte> bytes_;
};

}  // namespace leanstream::io
