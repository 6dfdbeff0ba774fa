// cache-sim, and --trace of the commands that compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command_line.h"

namespace leanstream::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json simulate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "cache-sim");
  arguments.push_back("--json");
  const Outcome outcome = run_leanstream(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(CacheSim, replays_the_cyclic_order_of_a_model) {
  const json object = simulate({"-m", tiny_model(), "--neurons", "16", "--tokens", "10", "--cache", "50%"});
  const json& trace = object.at("trace");
  EXPECT_EQ(trace.at("selection"), "all");
  EXPECT_EQ(trace.at("pieces"), "tile of 16 neurons");
  EXPECT_EQ(trace.at("tokens"), 10);
  // Half of the pieces stay; the others are missed with every token, and all with the first.
  for (const json& result : object.at("results")) {
    const std::string policy = result.at("policy");
    const double expected = policy == "lru" || policy == "arc" ? 1 : (1 + 9 * 0.5) / 10;
    EXPECT_NEAR(result.at("miss_ratio"), expected, 1e-9) << policy;
    EXPECT_NEAR(result.at("misses_of_belady"), expected / 0.55, 1e-9) << policy;
    EXPECT_NEAR(result.at("missed_bytes_per_token").get<double>(),
                expected * result.at("demanded_bytes_per_token").get<double>(), 1)
        << policy;
  }
  EXPECT_EQ(object.at("results").size(), 5u);
}

TEST(CacheSim, replays_what_run_recorded) {
  const TemporaryFolder folder;
  const std::string trace = folder.path("t");
  const Outcome run = run_leanstream({"run", "-m", tiny_model(), "-c", "64", "--memory", "1G", "-p", "abc", "-n", "8",
                                      "--ignore-eos", "--trace", trace, "--trace-top", "0.25"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(folder.names(), ElementsAre("t"));
  const json object = simulate({trace, "--cache", "25%,100%", "--policy", "lru,belady"});
  EXPECT_EQ(object.at("trace").at("selection"), "top 0.25 by importance");
  EXPECT_EQ(object.at("trace").at("complete"), true);
  // The prompt and all generated tokens but the last.
  EXPECT_GE(object.at("trace").at("tokens"), 8);
  ASSERT_EQ(object.at("results").size(), 4u);
  for (size_t i = 0; i < 4; i += 2)
    EXPECT_GE(object.at("results")[i].at("miss_ratio"), object.at("results")[i + 1].at("miss_ratio"));
  EXPECT_THAT(run_leanstream({"cache-sim", trace}).out, HasSubstr("| 25% | "));
}

TEST(CacheSim, replays_what_perplexity_and_bench_recorded) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", std::string(400, 'a'));
  const Outcome perplexity = run_leanstream({"perplexity", "-m", tiny_model(), "-f", text, "-c", "32", "--chunks", "2",
                                             "--memory", "1G", "--trace", folder.path("p"), "--trace-top", "0.2"});
  ASSERT_EQ(perplexity.exit_code, 0) << perplexity.err;
  EXPECT_EQ(simulate({folder.path("p")}).at("trace").at("tokens"), 64);
  const Outcome bench = run_leanstream({"bench", "-m", tiny_model(), "-p", "0", "-n", "4", "-r", "2", "--memory", "1G",
                                        "--no-warmup", "--trace", folder.path("b")});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_EQ(simulate({folder.path("b")}).at("trace").at("tokens"), 8);
}

TEST(CacheSim, says_what_is_wrong_in_one_sentence) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", "not a trace");
  for (const auto& [arguments, exit_code, sentence] :
       std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"cache-sim"}, 2, "nothing to replay"},
           {{"cache-sim", text, "-m", text}, 2, "not both"},
           {{"cache-sim", text, "--cache", "5x"}, 2, "--cache: "},
           {{"cache-sim", text, "--policy", "mru"}, 2, "--policy mru"},
           {{"cache-sim", text}, 1, "it is no trace"},
           {{"cache-sim", folder.path("none")}, 1, "No such file"},
           {{"cache-sim", "-m", text}, 1, text},
           {{"cache-sim", "-m", tiny_model(), "--neurons", "1", "--tokens", "1048576"}, 1, "fewer --tokens"},
           {{"run", "-m", tiny_model(), "-p", "a", "--trace-top", "0.2"}, 2, "--trace FILE"},
           {{"run", "-m", tiny_model(), "-p", "a", "--trace", text, "--trace-top", "1"}, 2, "--trace-top"},
           {{"run", "-m", tiny_model(), "-p", "a", "-n", "1", "--trace", folder.path("no/t")}, 1, "cannot create "},
           {{"run", "-m", text, "-p", "a", "--trace", text}, 1, "it is the model that is read"},
           {{"bench", "-m", tiny_model(), "-t", "1,2", "--trace", text}, 2, "one configuration"},
       }) {
    const Outcome outcome = run_leanstream(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments.back();
    ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
    EXPECT_THAT(error_lines(outcome).front(), HasSubstr(sentence));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_EQ(read_file(text), "not a trace");
}

TEST(CacheSim, uses_the_tokens_before_a_cut) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_leanstream({"run", "-m", tiny_model(), "-c", "64", "--memory", "1G", "-p", "abc", "-n", "8", "--trace",
                            folder.path("t")})
                .exit_code,
            0);
  const std::string whole = read_file(folder.path("t"));
  const std::string cut = folder.write("cut", whole.substr(0, whole.size() - 10));
  const Outcome outcome = run_leanstream({"cache-sim", cut});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("was not written to its end"));
}

}  // namespace
}  // namespace leanstream::test
