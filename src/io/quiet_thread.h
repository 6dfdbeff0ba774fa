#pragma once

#include <pthread.h>

#include <csignal>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/status.h"

namespace leanstream::io {

// Starts a thread with all signals blocked, so that the program's signal handlers never run on it and its system calls
// are not interrupted. `name` is cut to what the kernel keeps. Errors: kIo when the system has no thread to give.
template <typename Body>
Result<std::thread> start_quiet_thread(const std::string& name, Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  Result<std::thread> thread = [&]() -> Result<std::thread> {
    try {
      return std::thread(std::move(body));
    } catch (const std::system_error& error) {
      return io_error("cannot start the thread " + name, error.code().value());
    }
  }();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread.ok()) pthread_setname_np(thread->native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace leanstream::io
