#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/status.h"

namespace leanstream {

// A thread of ours: named, with a stack whose size does not depend on `ulimit -s`, and with all signals blocked, so
// that the program's handlers never run on it and its system calls are not interrupted. Owns the thread: joined when
// the object goes, unless detached. Externally synchronised.
class Thread {
 public:
  // The deepest frames are those of the matrix kernels, 250 KiB, a little more under sanitizers. Less than a huge page,
  // so that the system gives a thread the pages it touches and no more.
  static constexpr size_t kStackBytes = size_t{1} << 20;

  Thread() = default;  // none
  // `name` is cut to what the kernel keeps. Errors: kIo when the system has no thread to give.
  static Result<Thread> start(const std::string& name, std::function<void()> body);

  Thread(Thread&& other) noexcept : id_(other.id_), joinable_(std::exchange(other.joinable_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(joinable_, other.joinable_);
    return *this;
  }
  ~Thread() { join(); }

  void join();  // does nothing where there is none
  void detach();

 private:
  explicit Thread(pthread_t id) : id_(id), joinable_(true) {}

  pthread_t id_{};
  bool joinable_ = false;
};

// How much of the calling thread's stack is free. The main thread's grows up to `ulimit -s`, which counts as free.
size_t free_stack_bytes();

}  // namespace leanstream
