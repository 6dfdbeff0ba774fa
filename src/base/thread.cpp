#include "base/thread.h"

#include <csignal>
#include <cstdint>
#include <memory>

namespace leanstream {
namespace {

// What a new thread begins with. The creator owns it until the thread has it.
struct Start {
  std::string name;
  std::function<void()> body;
};

void* thread_main(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->name.c_str());
  start->body();
  return nullptr;
}

// pthread_create with kStackBytes and all signals blocked. 0 or an errno.
int create_thread(pthread_t* id, Start* start) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) return error;
  pthread_attr_setstacksize(&attributes, Thread::kStackBytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  const int error = pthread_create(id, &attributes, thread_main, start);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

// The lowest address of the calling thread's stack; 0 where the system does not tell.
uintptr_t stack_end() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size_bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size_bytes) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<uintptr_t>(lowest) : 0;
}

}  // namespace

Result<Thread> Thread::start(const std::string& name, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{name.substr(0, 15), std::move(body)});
  pthread_t id;
  if (const int error = create_thread(&id, start.get()); error != 0)
    return io_error("cannot start the thread " + name, error);
  static_cast<void>(start.release());
  return Thread(id);
}

void Thread::join() {
  if (std::exchange(joinable_, false)) pthread_join(id_, nullptr);
}

void Thread::detach() {
  if (std::exchange(joinable_, false)) pthread_detach(id_);
}

size_t free_stack_bytes() {
  // A fact of the thread that does not change; asking the system takes microseconds, for the main thread a file.
  thread_local const uintptr_t end = stack_end();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > end ? here - end : 0;
}

}  // namespace leanstream
