#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_line.h"

namespace leanstream::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> bench(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench", "-m", tiny_model(), "-p", "16", "-n", "4", "-r", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

TEST(Bench, has_every_sample_in_json) {
  const Outcome outcome = run_leanstream(bench({"-o", "json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json rows = json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("test"), "pp16");
  EXPECT_EQ(rows[1].at("test"), "tg4");
  for (const json& row : rows) {
    const auto samples = row.at("samples_ts").get<std::vector<double>>();
    ASSERT_EQ(samples.size(), 2u);
    EXPECT_NEAR(row.at("avg_ts").get<double>(), (samples[0] + samples[1]) / 2, 1e-6 * samples[0]);
    EXPECT_GT(row.at("load_warm_ms"), 0);
    EXPECT_GT(row.at("peak_rss_bytes"), 0);
    EXPECT_EQ(row.at("cache_hit_ratio"), 1);
    for (const char* key : {"stddev_ts", "load_cold_ms", "memory_budget_bytes", "storage_filesystem", "build_commit"})
      EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_GE(rows[0].at("ttft_ms"), rows[0].at("samples_ms")[0].get<double>() * 0.2);
}

TEST(Bench, leaves_out_a_row_of_zero) {
  EXPECT_EQ(json::parse(run_leanstream(bench({"-o", "json"})).out).size(), 2u);
  const Outcome outcome = run_leanstream({"bench", "-m", tiny_model(), "-p", "0", "-n", "4", "-r", "1", "-o", "jsonl"});
  ASSERT_EQ(lines(outcome.out).size(), 1u);
  EXPECT_EQ(json::parse(outcome.out).at("test"), "tg4");
}

TEST(Bench, goes_through_lists_of_models_budgets_and_threads) {
  const Outcome outcome = run_leanstream({"bench", "-m", tiny_model() + "," + tiny_chat_model(), "-p", "4", "-n", "0",
                                          "-r", "1", "--memory", "1G,500M", "-t", "1,2", "-o", "jsonl", "--no-warmup"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(lines(outcome.out).size(), 8u);
}

TEST(Bench, prints_a_table_or_comma_separated_values) {
  const Outcome table = run_leanstream(bench({}));
  EXPECT_THAT(table.out, HasSubstr("| pp16 |"));
  EXPECT_THAT(table.out, HasSubstr("read-ahead"));
  const std::vector<std::string> csv = lines(run_leanstream(bench({"-o", "csv"})).out);
  ASSERT_EQ(csv.size(), 3u);
  EXPECT_THAT(csv[0], HasSubstr("avg_ts,stddev_ts,samples_ts"));
}

TEST(Bench, refuses_odd_lists_in_one_sentence) {
  const std::vector<std::vector<std::string>> odd = {
      {"-p", ","},    {"-p", ""},        {"-p", "16,"},           {"-n", ",4"},
      {"-n", "4,,4"}, {"-t", ","},       {"-t", "1,0"},           {"-p", "1,-1"},
      {"-p", "1, x"}, {"-p", "[4]"},     {"-p", "1e9"},           {"-m", ","},
      {"-m", "a,,b"}, {"--memory", ","}, {"--memory", "1G,,2G"},  {"-r", "0"},
      {"-r", ","},    {"-o", "md,csv"},  {"-p", "0", "-n", "0,0"}};
  for (const std::vector<std::string>& flags : odd) {
    SCOPED_TRACE(flags[0] + " " + flags[1]);
    std::vector<std::string> arguments = {"bench", "-m", tiny_model(), "-r", "1"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Outcome outcome = run_leanstream(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err << outcome.out;
    EXPECT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Bench, adds_up_lists_that_are_given_again) {
  const Outcome outcome = run_leanstream(
      {"bench", "-m", tiny_model(), "-p", "4,8", "-p", "16", "-n", "0", "-r", "1", "-o", "jsonl", "-c", "64"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(lines(outcome.out).size(), 3u);
}

TEST(Bench, measures_the_rest_when_one_does_not_fit) {
  const Outcome outcome = run_leanstream(bench({"--memory", "14M,1G", "-o", "jsonl"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(lines(outcome.out).size(), 2u);
  EXPECT_EQ(error_lines(outcome).size(), 1u);
}

}  // namespace
}  // namespace leanstream::test
