#include "base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdint>

namespace leanstream {
namespace {

Thread must_start(const std::string& name, std::function<void()> body) {
  Result<Thread> thread = Thread::start(name, std::move(body));
  EXPECT_TRUE(thread.ok()) << thread.status().message();
  return *std::move(thread);
}

// What new threads get where nobody says otherwise: `ulimit -s` at the program's start.
class DefaultStack {
 public:
  explicit DefaultStack(size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t small = before_;
    pthread_attr_setstacksize(&small, bytes);
    pthread_setattr_default_np(&small);
  }
  ~DefaultStack() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

TEST(Thread, has_a_stack_of_its_own_size_whatever_the_system_gives_others) {
  const DefaultStack small(size_t{64} << 10);
  size_t free_bytes = 0;
  must_start("stack", [&] { free_bytes = free_stack_bytes(); }).join();
  EXPECT_GT(free_bytes, Thread::kStackBytes * 3 / 4);
  EXPECT_LE(free_bytes, Thread::kStackBytes);
}

TEST(Thread, knows_how_much_of_its_stack_is_used) {
  if (LEANSTREAM_SANITIZED) GTEST_SKIP() << "sanitizers place a function's variables elsewhere";
  constexpr size_t kUsed = size_t{256} << 10;
  size_t before = 0, after = 0;
  must_start("stack", [&] {
    before = free_stack_bytes();
    auto* used = static_cast<volatile char*>(__builtin_alloca(kUsed));
    used[0] = 1;
    after = free_stack_bytes();
  }).join();
  EXPECT_LE(after + kUsed, before);
  EXPECT_LT(before, after + kUsed + 4096);
}

TEST(Thread, runs_no_handler_of_the_program) {
  bool blocked = false;
  must_start("signals", [&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
  }).join();
  EXPECT_TRUE(blocked);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0) << "the caller's mask must be as it was";
}

TEST(Thread, is_named_and_joined_when_the_object_goes) {
  std::atomic<bool> done{false};
  char name[16] = {};
  {
    const Thread thread = must_start("a name that is too long", [&] {
      pthread_getname_np(pthread_self(), name, sizeof name);
      done = true;
    });
  }
  EXPECT_TRUE(done);
  EXPECT_STREQ(name, "a name that is ");
}

}  // namespace
}  // namespace leanstream
