// The memory budget holds for the whole process: measured in a process of its own, by the kernel's count.

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tests/api/api_fixture.h"

namespace leanstream::api {
namespace {

struct ProbeResult {
  int status = -1;  // a leanstream_status
  std::string output;
};

ProbeResult run(const std::string& command) {
  ProbeResult result;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) result.output.append(buffer.data(), n);
  result.status = WEXITSTATUS(::pclose(pipe));
  return result;
}

ProbeResult probe(const std::string& model, uint64_t budget, uint32_t context) {
  return run(std::string(LEANSTREAM_BUDGET_PROBE) + " '" + model + "' " + std::to_string(budget) + " " +
             std::to_string(context) + " 2>&1");
}

// "... the least that works is 33M (34603008 bytes)"
uint64_t least_budget_in(const std::string& message) {
  const size_t at = message.rfind('(');
  return at == std::string::npos ? 0 : std::strtoull(message.c_str() + at + 1, nullptr, 10);
}

class Budget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (LEANSTREAM_SANITIZED) GTEST_SKIP() << "sanitizers hold memory of their own";
    if (!std::filesystem::exists(model())) GTEST_SKIP() << model() << " is not here";
  }
  static std::string model() { return GetParam().empty() ? leanstream::test::tiny_model_path() : GetParam(); }
};

TEST_P(Budget, refusal_names_the_least_budget_and_a_run_within_it_stays_within_it) {
  // With its context, because the least budget for opening is that of the smallest session.
  for (const uint32_t context : {0u, 256u, 1024u}) {
    ProbeResult result = probe(model(), 12 << 20, context);
    for (int attempts = 0; result.status == LEANSTREAM_ERROR_OUT_OF_BUDGET && attempts < 2; ++attempts) {
      const uint64_t least = least_budget_in(result.output);
      ASSERT_GT(least, 12u << 20) << result.output;
      EXPECT_EQ(probe(model(), least - (3 << 20), context).status, LEANSTREAM_ERROR_OUT_OF_BUDGET)
          << "a smaller budget would have done: " << result.output;
      result = probe(model(), least, context);
    }
    ASSERT_EQ(result.status, LEANSTREAM_OK) << result.output;
    unsigned long long peak = 0, held = 0, budget = 0;
    ASSERT_EQ(std::sscanf(result.output.c_str(), "peak %llu held %llu budget %llu", &peak, &held, &budget), 3);
    EXPECT_LE(peak, budget) << "context " << context;
    EXPECT_LE(held, budget);
    RecordProperty("peak_of_budget_" + std::to_string(context), std::to_string(peak) + " of " + std::to_string(budget));
  }
}

// The file's name as a word, for the test's name.
std::string test_name(const testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param.empty() ? "tiny" : std::filesystem::path(parameter.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Budget,
                         testing::Values("", LEANSTREAM_SOURCE_DIR "/models/lean-docs-reglu-28m-Q8_0.gguf",
                                         LEANSTREAM_SHARED_DIR "/models/lean-docs-llama-25m-Q4_0.gguf",
                                         LEANSTREAM_SHARED_DIR "/models/lean-docs-qwen2-26m-Q8_0.gguf"),
                         test_name);

TEST(Example, completes_a_prompt_with_the_demo_model) {
  const std::string model = LEANSTREAM_SOURCE_DIR "/models/lean-docs-reglu-28m-Q8_0.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not here";
  const ProbeResult result = run(std::string(LEANSTREAM_EXAMPLE) + " '" + model + "' 'The function returns' 2>&1");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("tokens/s"), std::string::npos) << result.output;
  EXPECT_GT(result.output.size(), 60u) << result.output;
}

TEST(Example, says_why_it_cannot) {
  const ProbeResult result = run(std::string(LEANSTREAM_EXAMPLE) + " /no/model.gguf x 2>&1");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("not found: "), std::string::npos) << result.output;
}

}  // namespace
}  // namespace leanstream::api
