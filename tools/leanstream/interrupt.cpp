#include "interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <initializer_list>

#include "exit_code.h"

namespace leanstream::cli {
namespace {

// What a handler may touch; it runs on the main thread only (SignalsBlocked).
volatile std::sig_atomic_t g_inside_scope = 0;
volatile std::sig_atomic_t g_signal = 0;
volatile std::sig_atomic_t g_stderr_is_terminal = 0;

void on_signal(int signal) {
  if (!g_inside_scope || g_signal != 0) {
    if (g_stderr_is_terminal) {
      const ssize_t ignored = write(STDERR_FILENO, "\n", 1);
      static_cast<void>(ignored);
    }
    _exit(kExitInterrupted);
  }
  g_signal = signal;
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void install_signal_handlers() {
  g_stderr_is_terminal = isatty(STDERR_FILENO);
  struct sigaction action = {};
  action.sa_handler = on_signal;  // without SA_RESTART: a blocked read or write returns
  action.sa_mask = handled_signals();
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    // A shell starts background jobs with SIGINT ignored: they stay so.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then a failed write, with its sentence
}

int interrupted() {
  return g_signal;
}

InterruptScope::InterruptScope() {
  g_signal = 0;
  g_inside_scope = 1;
}
InterruptScope::~InterruptScope() {
  g_inside_scope = 0;
}

SignalsBlocked::SignalsBlocked() {
  const sigset_t set = handled_signals();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}
SignalsBlocked::~SignalsBlocked() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace leanstream::cli
