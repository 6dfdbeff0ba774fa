#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace leanstream::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end = ends[0];
    write_end = ends[1];
  }
};

void close_and_forget(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

[[noreturn]] void become(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

void open_as(int descriptor, const std::string& path, int flags) {
  const int opened = open(path.c_str(), flags, 0644);
  if (opened < 0) _exit(126);
  dup2(opened, descriptor);
  close(opened);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const ProcessOptions& options) : input_(options.input) {
  signal(SIGPIPE, SIG_IGN);
  if (options.terminal) {
    pid_ = forkpty(&out_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      signal(SIGPIPE, SIG_DFL);
      become(arguments);
    }
    fcntl(out_, F_SETFD, FD_CLOEXEC);
    type(std::exchange(input_, {}));
    return;
  }
  Pipe in, out, err;
  pid_ = fork();
  if (pid_ == 0) {
    signal(SIGPIPE, SIG_DFL);
    dup2(in.read_end, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(err.write_end, STDERR_FILENO);
    if (!options.stdin_path.empty()) open_as(STDIN_FILENO, options.stdin_path, O_RDONLY);
    if (!options.stdout_path.empty()) open_as(STDOUT_FILENO, options.stdout_path, O_WRONLY | O_CREAT | O_TRUNC);
    if (options.close_stdout) close(STDOUT_FILENO);
    become(arguments);
  }
  close(in.read_end);
  close(out.write_end);
  close(err.write_end);
  in_ = in.write_end;
  out_ = out.read_end;
  err_ = err.read_end;
  fcntl(in_, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (int* descriptor : {&in_, &out_, &err_}) close_and_forget(*descriptor);
}

void Process::send_signal(int signal) {
  kill(pid_, signal);
}

void Process::type(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(out_, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void Process::close_output() {
  close_and_forget(out_);
}

bool Process::collect(std::chrono::milliseconds patience) {
  if (in_ >= 0 && input_.empty()) close_and_forget(in_);
  std::array<pollfd, 3> wanted = {{{out_, POLLIN, 0}, {err_, POLLIN, 0}, {in_, POLLOUT, 0}}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(wanted.data(), wanted.size(), static_cast<int>(patience.count())) <= 0) return true;
  const auto take = [](int& descriptor, std::string& text) {
    char bytes[65536];
    const ssize_t count = read(descriptor, bytes, sizeof bytes);
    if (count > 0) text.append(bytes, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) close_and_forget(descriptor);  // a terminal ends with EIO
  };
  if (wanted[0].revents) take(out_, outcome_.out);
  if (wanted[1].revents) take(err_, outcome_.err);
  if (wanted[2].revents && in_ >= 0) {
    const ssize_t count = write(in_, input_.data(), input_.size());
    if (count > 0) input_.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno != EAGAIN) close_and_forget(in_);  // the program does not read its input
  }
  return true;
}

bool Process::wait_for_output(std::string_view text, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  const auto there = [&] {
    return outcome_.out.find(text) != std::string::npos || outcome_.err.find(text) != std::string::npos;
  };
  while (!there() && Clock::now() < deadline)
    if (!collect(std::chrono::milliseconds(50))) return there();
  return there();
}

Outcome Process::finish(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (collect(std::chrono::milliseconds(50)))
    if (Clock::now() > deadline) {
      outcome_.timed_out = true;
      kill(pid_, SIGKILL);
      break;
    }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  return outcome_;
}

Outcome run_process(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  Process process(arguments, options);
  return process.finish();
}

}  // namespace leanstream::test
