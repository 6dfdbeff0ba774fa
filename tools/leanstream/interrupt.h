#pragma once

#include <csignal>

namespace leanstream::cli {

// SIGINT and SIGTERM. Outside an InterruptScope they end the process at once, with exit code 130: nothing is held
// that would need it. Inside one, the first sets a flag, which whatever computes polls, and a second ends the process.
// SIGPIPE is ignored: a closed standard output shows in write(2). Once, at start.
void install_signal_handlers();

// The signal that came since the InterruptScope began; 0 if none did, or outside of one.
int interrupted();

class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

// Threads made while it lives never run the handlers: the main thread does, and its blocking calls see EINTR.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace leanstream::cli
