#include "line_reader.h"

#include <unistd.h>

#include <cerrno>

namespace leanstream::cli {

Result<std::optional<std::string>> LineReader::next() {
  size_t searched = 0;
  for (;;) {
    const size_t newline = pending_.find('\n', searched);
    if (newline != std::string::npos) {
      std::optional<std::string> line = pending_.substr(0, newline);
      pending_.erase(0, newline + 1);
      return line;
    }
    if (at_end_) {
      if (pending_.empty()) return std::optional<std::string>();
      return std::optional<std::string>(std::exchange(pending_, {}));
    }
    searched = pending_.size();
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("cannot read standard input", errno);
    at_end_ = count == 0;
    pending_.append(bytes, static_cast<size_t>(count));
  }
}

}  // namespace leanstream::cli
