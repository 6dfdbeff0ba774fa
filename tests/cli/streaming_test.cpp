// Weights that do not fit the budget: the same text, the cap kept, faults and interrupts in one sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command_line.h"

namespace leanstream::test {
namespace {

using json = nlohmann::json;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Streaming : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have_demo_model()) GTEST_SKIP() << demo_model() << " is not there";
    const json plan = plan_at("1G");
    ASSERT_EQ(plan.at("streamed_bytes"), 0);
    least_ = plan.at("least_budget_bytes").get<int64_t>();
    ASSERT_GT(plan_at(std::to_string(least_)).at("streamed_bytes").get<int64_t>(), 10'000'000);
  }

  static json plan_at(const std::string& memory) {
    return json::parse(
        run_leanstream({"plan", "-m", demo_model(), "-c", "128", "--memory", memory, "--json", "--state-dir", ""}).out);
  }
  static std::vector<std::string> run_with(const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> arguments = leanstream({"run", "-m", model, "-c", "128", "-p", "The function", "-n", "12",
                                                     "--temp", "0", "--ignore-eos", "--state-dir", ""});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static Outcome run(std::vector<std::string> more) { return run_process(run_with(demo_model(), std::move(more))); }
  std::string least() const { return std::to_string(least_); }

  int64_t least_ = 0;
  const TemporaryFolder folder_;
};

TEST_F(Streaming, gives_the_same_text_within_any_budget_that_works) {
  const std::string expected = run({"--memory", "1G"}).out;
  ASSERT_GT(expected.size(), 30u);
  for (const int64_t budget : {least_, least_ + (3 << 20), least_ + (5 << 20)}) {
    const Outcome outcome = run({"--memory", std::to_string(budget), "--stats-json", folder_.path("s")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, expected);
    const json stats = json::parse(read_file(folder_.path("s")));
    EXPECT_LE(stats.at("peak_rss_bytes"), budget);
    EXPECT_GT(stats.at("bytes_read_decode"), 0)
        << "a budget of " << budget << ", the least is " << least_ << outcome.err;
    EXPECT_LT(stats.at("cache_hit_ratio"), 1.0);
    EXPECT_THAT(stats.at("streaming").at("engine"), ::testing::AnyOf("io_uring", "pread"));
  }
}

TEST_F(Streaming, reads_with_threads_where_it_is_told_to) {
  const std::string expected = run({"--memory", "1G"}).out;
  const Outcome outcome = run({"--memory", least(), "--io", "pread", "--stats-json", folder_.path("s")});
  EXPECT_EQ(outcome.out, expected) << outcome.err;
  EXPECT_EQ(json::parse(read_file(folder_.path("s"))).at("streaming").at("engine"), "pread");
}

TEST_F(Streaming, goes_on_where_memory_cannot_be_registered) {
  const std::string expected = run({"--memory", "1G"}).out;
  // Root keeps CAP_IPC_LOCK, which the limit does not bind: dropped along the way where setpriv is there.
  const std::vector<std::string> command = run_with(demo_model(), {"--memory", least()});
  std::string line = "ulimit -l 64; exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock --no-new-privs";
  for (const std::string& argument : command) line += " '" + argument + "'";
  const Outcome outcome = run_process({"/bin/sh", "-c", line});
  if (outcome.exit_code == 127) GTEST_SKIP() << "no setpriv here";
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected);
}

TEST_F(Streaming, is_bound_by_a_slow_drive_and_says_so) {
  const Outcome outcome = run({"--memory", least(), "--emulate-storage", "100MB/s@64K,lat=100us", "-n", "4",
                               "--stats-json", folder_.path("s")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json stats = json::parse(read_file(folder_.path("s")));
  EXPECT_EQ(stats.at("bound_by"), "storage");
  EXPECT_LE(stats.at("read_gbps"), 0.13);
  EXPECT_GT(stats.at("io_wait_ms"), 100.0);
}

TEST_F(Streaming, plan_foretells_the_speed_of_a_drive) {
  const Outcome outcome = run_leanstream(
      {"plan", "-m", demo_model(), "-c", "128", "--memory", least(), "--emulate-storage", "100MB/s@64K", "--json"});
  const json plan = json::parse(outcome.out);
  EXPECT_NEAR(plan.at("storage_gbps").get<double>(), 0.1, 0.02);
  EXPECT_NEAR(plan.at("tokens_per_second_bound").get<double>(),
              plan.at("storage_gbps").get<double>() * 1e9 / plan.at("streamed_bytes").get<double>(), 0.01);
  EXPECT_EQ(plan.at("bound_by"), "storage");
}

TEST_F(Streaming, is_interrupted_while_the_drive_makes_it_wait) {
  std::vector<std::chrono::milliseconds> took;
  for (int i = 0; i < 6; ++i) {
    Process process(run_with(demo_model(), {"--memory", least(), "--emulate-storage", "2MB/s@64K"}));
    ASSERT_TRUE(process.wait_for_output("The function")) << process.out();
    process.wait_for_output("no output says this", std::chrono::milliseconds(40 * i));
    const auto start = std::chrono::steady_clock::now();
    process.send_signal(SIGINT);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    took.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start));
  }
  // The machine that runs the tests may be busy with others, so the fastest counts.
  EXPECT_LE(*std::min_element(took.begin(), took.end()), 100ms);
}

TEST_F(Streaming, a_model_file_that_is_cut_short_meanwhile_is_one_sentence) {
  const std::string copy = folder_.path("model.gguf");
  std::filesystem::copy_file(demo_model(), copy);
  Process process(run_with(copy, {"--memory", least(), "--emulate-storage", "20MB/s@64K", "-n", "100"}));
  ASSERT_TRUE(process.wait_for_output("The function"));
  ASSERT_EQ(::truncate(copy.c_str(), 5'000'000), 0);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(error_lines(outcome), ElementsAre(HasSubstr(copy)));
}

TEST_F(Streaming, a_model_on_tmpfs_streams_too) {
  const std::string copy = "/dev/shm/leanstream-test-" + std::to_string(getpid()) + ".gguf";
  std::error_code error;
  if (!std::filesystem::copy_file(demo_model(), copy, error)) GTEST_SKIP() << "no room in /dev/shm";
  const std::string expected = run({"--memory", "1G"}).out;
  const Outcome outcome = run_process(run_with(copy, {"--memory", least()}));
  std::filesystem::remove(copy);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected);
}

TEST_F(Streaming, a_drive_that_makes_no_sense_is_refused) {
  const Outcome outcome = run({"--memory", least(), "--emulate-storage", "fast"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(error_lines(outcome), ElementsAre(HasSubstr("fast")));
}

TEST_F(Streaming, whatever_stands_where_a_drives_curve_is_kept_is_survived) {
  const std::string expected = run({"--memory", "1G"}).out;
  ASSERT_EQ(run({"--memory", least(), "--state-dir", folder_.path("state")}).exit_code, 0);
  std::string kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path("state"))) kept = entry.path();
  ASSERT_FALSE(kept.empty());
  const auto put = [&](const std::string& what) {
    std::filesystem::remove_all(kept);
    if (what == "folder") std::filesystem::create_directory(kept);
    EXPECT_TRUE(what != "fifo" || ::mkfifo(kept.c_str(), 0600) == 0);
    if (what == "endless") std::filesystem::create_symlink("/dev/zero", kept);
  };
  for (const char* what : {"folder", "fifo", "endless"}) {
    put(what);
    const Outcome outcome = run({"--memory", least(), "--state-dir", folder_.path("state")});
    EXPECT_EQ(outcome.exit_code, 0) << what << ": " << outcome.err;
    EXPECT_EQ(outcome.out, expected) << what;
  }
}

TEST_F(Streaming, a_folder_that_cannot_keep_a_curve_is_said_once) {
  const std::string file = folder_.write("state", "not a folder");
  const Outcome outcome = run({"--memory", least(), "--state-dir", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const size_t first = outcome.err.find("is not kept");
  EXPECT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("is not kept", first + 1), std::string::npos) << outcome.err;
}

TEST_F(Streaming, is_interrupted_while_the_drive_is_measured) {
  auto best = 10'000ms;
  for (int i = 0; i < 4; ++i) {
    Process process(run_with(demo_model(), {"--memory", least(), "--state-dir", folder_.path(std::to_string(i))}));
    process.wait_for_output("no output says this", 200ms);
    const auto start = std::chrono::steady_clock::now();
    process.send_signal(SIGINT);
    EXPECT_EQ(process.finish().exit_code, 130);
    best =
        std::min(best, std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start));
  }
  EXPECT_LE(best, 150ms);  // one measurement, and the promise
}

TEST_F(Streaming, a_model_file_that_is_rewritten_meanwhile_gives_no_wrong_token) {
  const std::string expected = run({"--memory", "1G"}).out;
  const std::string copy = folder_.path("model.gguf");
  for (const auto delay : {50ms, 150ms, 400ms}) {
    std::filesystem::copy_file(demo_model(), copy, std::filesystem::copy_options::overwrite_existing);
    Process process(run_with(copy, {"--memory", least(), "--emulate-storage", "60MB/s@64K"}));
    ASSERT_TRUE(process.wait_for_output("The function"));
    process.wait_for_output("no output says this", delay);
    const int fd = ::open(copy.c_str(), O_WRONLY);
    const std::string zeros(20'000'000, '\0');
    ASSERT_EQ(::pwrite(fd, zeros.data(), zeros.size(), 5'000'000), static_cast<ssize_t>(zeros.size()));
    ::close(fd);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_EQ(expected.compare(0, outcome.out.size(), outcome.out), 0) << outcome.out;
    EXPECT_THAT(error_lines(outcome), ElementsAre(HasSubstr(copy)));
  }
}

TEST_F(Streaming, perplexity_and_bench_stream_as_well) {
  const auto perplexity = [&](const std::string& memory) {
    return run_leanstream({"perplexity", "-m", demo_model(), "-f", LEANSTREAM_SOURCE_DIR "/LICENSE", "-c", "128",
                           "--chunks", "2", "--memory", memory, "--state-dir", "", "--json"});
  };
  const Outcome streamed = perplexity(std::to_string(least_ + (6 << 20)));
  EXPECT_EQ(streamed.exit_code, 0) << streamed.err;
  EXPECT_EQ(streamed.out, perplexity("1G").out);
  const Outcome bench = run_leanstream({"bench", "-m", demo_model(), "-p", "8", "-n", "4", "-r", "1", "--memory",
                                        std::to_string(least_ + (6 << 20)), "-o", "json", "--state-dir", ""});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
}

}  // namespace
}  // namespace leanstream::test
