#include "runtime/runtime.h"

#include <vector>

#include "runtime/machine.h"
#include "tests/runtime/runtime_fixture.h"

namespace leanstream::runtime {
namespace {

TEST(Runtime, has_a_thread_for_each_usable_cpu_by_default) {
  EXPECT_EQ(test::create_runtime(0)->team().size(), usable_cpu_count());
  EXPECT_GE(usable_cpu_count(), 1u);
  EXPECT_LE(usable_cpu_count(), kMaxThreads);
}

TEST(Runtime, refuses_more_threads_than_there_may_be) {
  RuntimeParams params;
  params.threads = kMaxThreads + 1;
  const Status status = Runtime::create(params).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("257"), std::string::npos) << status.message();
}

TEST(Runtime, runs_every_simd_target_that_this_cpu_has_by_name) {
  for (const kernels::Kernels* each : kernels::all_kernels()) {
    RuntimeParams params;
    params.threads = 1;
    params.simd = each->name;
    EXPECT_STREQ(test::must(Runtime::create(params))->kernels().name, each->name);
  }
}

TEST(Runtime, names_the_simd_targets_there_are_when_asked_for_another) {
  RuntimeParams params;
  params.simd = "mmx";
  const Status status = Runtime::create(params).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("'mmx'"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("portable"), std::string::npos) << status.message();
}

TEST(Runtime, refuses_a_budget_below_its_own_cost) {
  RuntimeParams params;
  params.memory_budget_bytes = 1 << 20;
  EXPECT_EQ(Runtime::create(params).status().code(), Code::kOutOfBudget);
}

TEST(Runtime, says_what_it_chose_in_its_log) {
  std::string log;
  RuntimeParams params;
  params.threads = 1;
  params.log = Log([](LogLevel, std::string_view line, void* user) { *static_cast<std::string*>(user) += line; }, &log);
  const std::unique_ptr<Runtime> runtime = test::must(Runtime::create(params));
  for (const std::string& part : {std::string(runtime->kernels().name), std::string("1 thread"),
                                  std::string("memory budget"), std::string("MemAvailable"), machine_name()})
    EXPECT_NE(log.find(part), std::string::npos) << part << " in: " << log;
}

}  // namespace
}  // namespace leanstream::runtime
