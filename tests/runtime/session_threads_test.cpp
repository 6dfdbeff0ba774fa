// Meant for ThreadSanitizer as much as for its own expectations: sessions of one model on several threads.

#include <pthread.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/runtime/runtime_fixture.h"

namespace leanstream::runtime {
namespace {

using Tokens = std::vector<Token>;

Tokens prompt(uint32_t salt) {
  Tokens tokens(40);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>((i * 13 + salt * 29) % 300);
  return tokens;
}

// Prompt and continuation of a session of its own.
Tokens complete(const OpenModel& model, uint32_t salt) {
  const auto session = test::must(Session::create(model, {128}, {}));
  EXPECT_TRUE(session->prefill(prompt(salt)).ok());
  GenerateParams params;
  params.max_tokens = 20;
  params.ignore_eos = true;
  test::must(session->generate(params));
  return {session->tokens(), session->tokens() + session->position()};
}

TEST(SessionThreads, a_session_per_thread_gives_what_each_gives_alone) {
  constexpr uint32_t kThreads = 4;
  const auto runtime = test::create_runtime(2);
  const auto model = test::open_model(*runtime, leanstream::test::tiny_model_path());
  std::vector<Tokens> alone(kThreads), together(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) alone[i] = complete(*model, i);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { together[i] = complete(*model, i); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, together);
}

TEST(SessionThreads, cancel_reaches_a_running_call_from_another_thread) {
  const auto runtime = test::create_runtime(2);
  const auto model = test::open_model(*runtime, leanstream::test::tiny_model_path());
  const auto session = test::must(Session::create(*model, {}, {}));
  std::atomic<bool> running{false};
  GenerateParams params;
  params.ignore_eos = true;
  params.text = [](const char*, size_t, void* user) {
    static_cast<std::atomic<bool>*>(user)->store(true);
    return 1;
  };
  params.text_user = &running;
  ASSERT_TRUE(session->prefill(prompt(1)).ok());
  std::thread canceller([&] {
    while (!running.load()) std::this_thread::yield();
    session->cancel();
  });
  const GenerateResult result = test::must(session->generate(params));
  canceller.join();
  // The context may have been filled before the cancel came; then the next call has it.
  if (result.reason == StopReason::kLength)
    EXPECT_EQ(session->prefill(prompt(1)).code(), Code::kContextFull);
  else
    EXPECT_EQ(result.reason, StopReason::kCancelled);
}

TEST(SessionThreads, thread_count_changes_no_result) {
  const auto one = test::create_runtime(1), three = test::create_runtime(3);
  const auto model_one = test::open_model(*one, leanstream::test::tiny_model_path());
  const auto model_three = test::open_model(*three, leanstream::test::tiny_model_path());
  EXPECT_EQ(complete(*model_one, 5), complete(*model_three, 5));
}

// Runs `body` on a thread that has a stack of `bytes`.
void run_on_stack(size_t bytes, const std::function<void()>& body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  const auto main = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, main, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(SessionThreads, a_caller_with_too_small_a_stack_is_refused_and_one_with_enough_is_not) {
  const auto runtime = test::create_runtime(2);
  const auto model = test::open_model(*runtime, leanstream::test::tiny_model_path());
  const auto session = test::must(Session::create(*model, {128}, {}));
  run_on_stack(size_t{128} << 10, [&] {
    const Status refused = session->prefill(prompt(1));
    EXPECT_EQ(refused.code(), Code::kUnsupported);
    EXPECT_NE(refused.message().find("stack"), std::string::npos) << refused.message();
    EXPECT_EQ(OpenModel::open(*runtime, leanstream::test::tiny_model_path(), LoadMode::kFull, {}, {}).status().code(),
              Code::kUnsupported);
  });
  EXPECT_EQ(session->position(), 0u);
  run_on_stack(size_t{512} << 10, [&] { EXPECT_TRUE(session->prefill(prompt(1)).ok()); });
  EXPECT_EQ(session->position(), 40u);
}

}  // namespace
}  // namespace leanstream::runtime
