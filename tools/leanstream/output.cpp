#include "output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "exit_code.h"
#include "interrupt.h"
#include "log.h"

namespace leanstream::cli {

bool StandardOutput::write(std::string_view bytes) {
  if (!bytes.empty()) {
    line_unfinished_ = bytes.back() != '\n';
    set_text_inside_line(line_unfinished_);
  }
  while (!bytes.empty() && open()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EINTR) {
      if (interrupted()) return false;
    } else if (errno == EAGAIN) {  // someone made the descriptor non-blocking
      pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
      poll(&ready, 1, 1000);
      if (interrupted()) return false;
    } else if (errno == EPIPE) {
      reader_gone_ = true;
    } else {
      failure_ = io_error("cannot write to standard output", errno);
    }
  }
  return open();
}

void StandardOutput::finish_line_on_terminal() {
  if (line_unfinished_ && isatty(STDOUT_FILENO)) write("\n");
}

int StandardOutput::exit_code() const {
  return failure_.ok() ? kExitOk : report_failure(failure_);
}

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken, so it is this one. Read-only for standard output: writing there stays an error.
    const int opened = ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    static_cast<void>(opened);
  }
}

bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) != 0;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}

}  // namespace leanstream::cli
