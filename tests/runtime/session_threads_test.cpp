// Meant for ThreadSanitizer as much as for its own expectations: sessions of one model on several threads.

#include <atomic>
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

}  // namespace
}  // namespace leanstream::runtime
