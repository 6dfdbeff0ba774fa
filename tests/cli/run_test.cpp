#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command_line.h"

namespace leanstream::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> greedy(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"run", "-m", tiny_model(), "--temp", "0", "-n", "8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_usage_error(const Outcome& outcome, const std::string& what) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
  EXPECT_THAT(error_lines(outcome)[0], HasSubstr(what));
}

void expect_failure(const Outcome& outcome, const std::string& what) {
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
  EXPECT_THAT(error_lines(outcome)[0], HasSubstr(what));
}

TEST(Run, echoes_the_prompt_and_streams_text_only_to_standard_output) {
  const Outcome with = run_leanstream(greedy({"-p", "some words"}));
  const Outcome without = run_leanstream(greedy({"-p", "some words", "--no-display-prompt"}));
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(with.out, "some words" + without.out);
  EXPECT_THAT(without.out, Not(HasSubstr("leanstream:")));
  EXPECT_THAT(with.err, HasSubstr("eval"));
  EXPECT_THAT(with.err, HasSubstr("peak"));
}

TEST(Run, gives_the_same_text_from_every_prompt_source) {
  const TemporaryFolder folder;
  const std::string file = folder.write("prompt", "one two\nthree\n");
  const std::string expected = run_leanstream(greedy({"-p", "one two\\nthree"})).out;
  EXPECT_THAT(expected, StartsWith("one two\nthree"));
  EXPECT_EQ(run_leanstream(greedy({"-f", file})).out, expected);
  EXPECT_EQ(run_leanstream(greedy({}), {.input = "one two\nthree\n"}).out, expected);
  EXPECT_EQ(run_leanstream(greedy({"--no-escape", "-p", "one two\nthree"})).out, expected);
  EXPECT_THAT(run_leanstream(greedy({"-bf", file})).out, StartsWith("one two\nthree\n"));
}

TEST(Run, leaves_escapes_alone_when_asked_to) {
  EXPECT_THAT(run_leanstream(greedy({"--no-escape", "-p", "a\\nb"})).out, StartsWith("a\\nb"));
  EXPECT_THAT(run_leanstream(greedy({"-p", "a\\x41\\q\\"})).out, StartsWith("aA\\q\\"));
}

TEST(Run, takes_nul_bytes_and_invalid_utf8_from_files_and_pipes) {
  const TemporaryFolder folder;
  const std::string bytes("left\0right\xff\xc3 end", 16);
  const std::string file = folder.write("prompt", bytes);
  const std::string stats = folder.path("stats.json");
  const Outcome from_file = run_leanstream(greedy({"-f", file, "--stats-json", stats}));
  ASSERT_EQ(from_file.exit_code, 0) << from_file.err;
  EXPECT_EQ(from_file.out.substr(0, bytes.size()), bytes);
  // Every byte was tokenized, those after the NUL too.
  const json tokens = json::parse(run_leanstream({"tokenize", "-m", tiny_model(), "-f", file, "--bos"}).out);
  EXPECT_GT(tokens.size(), 8u);
  EXPECT_EQ(json::parse(read_file(stats)).at("prompt_tokens"), tokens.size());
  EXPECT_EQ(run_leanstream(greedy({}), {.input = bytes}).out, from_file.out);
}

TEST(Run, does_not_read_standard_input_when_it_has_a_prompt) {
  const std::string expected = run_leanstream(greedy({"-p", "given"})).out;
  EXPECT_EQ(run_leanstream(greedy({"-p", "given"}), {.input = "piped"}).out, expected);
  EXPECT_EQ(run_leanstream(greedy({"-p", "given"}), {.stdin_path = "/dev/null"}).out, expected);
}

TEST(Run, refuses_two_prompt_sources) {
  const TemporaryFolder folder;
  const std::string file = folder.write("prompt", "x");
  expect_usage_error(run_leanstream(greedy({"-p", "x", "-f", file})), "more than one prompt");
}

TEST(Run, takes_the_last_of_a_flag_that_is_given_again) {
  const std::string expected = run_leanstream(greedy({"-p", "x", "-n", "3"})).out;
  const Outcome outcome = run_leanstream(greedy(
      {"-p",       "y",   "-p",       "x",         "-n",     "9",         "--n-predict", "3",    "--seed",    "1",
       "-s",       "2",   "-ngl",     "1",         "-ngl",   "2",         "-fa",         "-fa",  "on",        "--mmap",
       "--mmap",   "-v",  "-v",       "--no-perf", "--perf", "--no-perf", "--kv-type",   "q8_0", "--kv-type", "f16",
       "--memory", "14M", "--memory", "1G",        "--temp", "9",         "--temp",      "0"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected);
}

TEST(Run, refuses_values_that_make_no_sense_of_flags_without_effect) {
  const auto usage = [](const char* flag, const char* value) {
    return run_leanstream(greedy({"-p", "x", flag, value}));
  };
  expect_usage_error(usage("-ngl", "abc"), "'abc' is not one of auto, all or a number");
  expect_usage_error(usage("-ngl", "1.5"), "1.5");
  expect_usage_error(usage("-ngl", ""), "''");
  expect_usage_error(usage("-fa", "maybe"), "'maybe' is not one of on, off, auto");
  expect_usage_error(usage("-lm", "quickly"), "'quickly'");
  expect_usage_error(usage("-tb", "two"), "'two'");
  expect_usage_error(usage("-b", "-1"), "from 1 on");
  for (const char* layers : {"auto", "all", "-1", "99"}) EXPECT_EQ(usage("-ngl", layers).exit_code, 0) << layers;
}

TEST(Run, begins_from_bos_where_the_prompt_is_empty) {
  const Outcome outcome = run_leanstream(greedy({}), {.stdin_path = "/dev/null"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(run_leanstream(greedy({"-p", ""})).out, outcome.out);
}

TEST(Run, refuses_a_prompt_longer_than_the_context_with_both_numbers) {
  const Outcome outcome = run_leanstream(greedy({"-c", "4", "-p", "a b c d e f g h"}));
  expect_failure(outcome, "the context holds 4");
  const json tokens =
      json::parse(run_leanstream({"tokenize", "-m", tiny_model(), "-p", "a b c d e f g h", "--bos"}).out);
  EXPECT_THAT(outcome.err, HasSubstr(std::to_string(tokens.size()) + " tokens"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(Run, stops_with_reason_length_when_the_context_is_full) {
  const TemporaryFolder folder;
  const std::string stats = folder.path("stats.json");
  const Outcome outcome = run_leanstream(
      {"run", "-m", tiny_model(), "--temp", "0", "-c", "16", "--ignore-eos", "-p", "a", "--stats-json", stats});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(read_file(stats)).at("stop_reason"), "length");
}

TEST(Run, stops_at_a_stop_string_and_does_not_show_it) {
  const TemporaryFolder folder;
  const std::string stats = folder.path("stats.json");
  const std::string whole = run_leanstream(greedy({"-p", "x", "--no-display-prompt", "--ignore-eos"})).out;
  ASSERT_GE(whole.size(), 4u);
  const std::string stop = whole.substr(2, 2);
  const Outcome outcome = run_leanstream(
      greedy({"-p", "x", "--no-display-prompt", "--ignore-eos", "-r", "[no,such]", "-r", stop, "--stats-json", stats}));
  EXPECT_EQ(outcome.out, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(json::parse(read_file(stats)).at("stop_reason"), "stop");
}

TEST(Run, writes_exactly_the_promised_statistics) {
  const TemporaryFolder folder;
  const std::string stats = folder.path("stats.json");
  ASSERT_EQ(run_leanstream(greedy({"-p", "a b", "--stats-json", stats, "--ignore-eos", "--memory", "300M"})).exit_code,
            0);
  const json object = json::parse(read_file(stats));
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  EXPECT_THAT(
      keys, ::testing::UnorderedElementsAre("prompt_tokens", "generated_tokens", "load_ms", "ttft_ms", "prefill_tps",
                                            "decode_tps", "peak_rss_bytes", "device_bytes", "memory_budget_bytes",
                                            "bytes_read", "bytes_read_decode", "read_gbps", "cache_hit_ratio",
                                            "io_wait_ms", "backend", "device_name", "simd", "bound_by", "stop_reason"));
  EXPECT_EQ(object["generated_tokens"], 8);
  EXPECT_EQ(object["memory_budget_bytes"], 300u << 20);
  EXPECT_GT(object["peak_rss_bytes"], 0);
  EXPECT_LE(object["peak_rss_bytes"], object["memory_budget_bytes"]);
  EXPECT_EQ(object["backend"], "cpu");
  EXPECT_THAT(folder.names(), ElementsAre("stats.json"));  // nothing temporary is left
}

TEST(Run, writes_statistics_to_a_device_without_replacing_it) {
  const Outcome outcome = run_leanstream(greedy({"-p", "a", "--no-display-prompt", "--stats-json", "/dev/stderr"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("\"stop_reason\""));
}

TEST(Run, refuses_a_statistics_file_that_cannot_be_written_before_it_computes) {
  const TemporaryFolder folder;
  const std::string absent = folder.path("absent/stats.json");
  const auto with_stats = [](const std::string& path) {
    return run_leanstream(greedy({"-p", "x", "--stats-json", path}));
  };
  for (const std::string& path : {absent, folder.path("."), std::string("/dev/absent")}) {
    SCOPED_TRACE(path);
    const Outcome outcome = with_stats(path);
    expect_failure(outcome, path + ":");
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, Not(HasSubstr(".tmp")));
  }
  expect_failure(run_leanstream({"chat", "-m", tiny_chat_model(), "--stats-json", absent}, {.input = "x\n"}), absent);
  expect_failure(with_stats("/dev/full"), "/dev/full: No space left on device");
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Run, leaves_the_statistics_file_alone_when_it_fails) {
  const TemporaryFolder folder;
  const std::string stats = folder.write("stats.json", "of yesterday");
  expect_failure(run_leanstream({"run", "-m", folder.path("absent"), "-p", "x", "--stats-json", stats}), "absent");
  EXPECT_EQ(read_file(stats), "of yesterday");
  EXPECT_THAT(folder.names(), ElementsAre("stats.json"));
}

TEST(Run, does_not_wait_for_a_reader_of_a_pipe_that_has_none) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_failure(run_leanstream(greedy({"-p", "x", "--stats-json", pipe})), pipe);
  expect_failure(run_leanstream(greedy({"-p", "x", "--log-file", pipe})), pipe);
}

TEST(Run, refuses_to_write_over_the_model_it_reads) {
  const TemporaryFolder folder;
  const std::string bytes = read_file(tiny_model());
  const std::string model = folder.write("model", bytes), link = folder.path("link"), hard = folder.path("hard");
  ASSERT_EQ(symlink("model", link.c_str()), 0);
  ASSERT_EQ(::link(model.c_str(), hard.c_str()), 0);
  for (const std::string& same : {model, link, hard})
    for (const char* flag : {"--stats-json", "--log-file"})
      expect_failure(run_leanstream({"run", "-m", model, "-p", "x", flag, same}), same);
  EXPECT_EQ(read_file(model), bytes);
}

TEST(Run, refuses_a_budget_that_is_too_small_before_loading) {
  expect_failure(run_leanstream(greedy({"-p", "a", "--memory", "14M"})), "budget");
  const Outcome share = run_leanstream(greedy({"-p", "a", "--memory", "60%"}));
  EXPECT_EQ(share.exit_code, 1);
  EXPECT_THAT(share.out, IsEmpty());
}

TEST(Run, says_what_it_chose_where_nothing_was_asked_for) {
  const Outcome chosen = run_leanstream(greedy({"-p", "a"}));
  EXPECT_THAT(chosen.err, HasSubstr("memory budget"));
  EXPECT_THAT(chosen.err, HasSubstr("context"));
  const Outcome asked = run_leanstream(greedy({"-p", "a", "--memory", "500M", "-c", "64", "--no-perf"}));
  EXPECT_THAT(asked.err, IsEmpty());
  EXPECT_THAT(run_leanstream({"run", "-m", tiny_model(), "-p", "a", "-n", "1"}).err, HasSubstr("seed"));
}

TEST(Run, does_not_mind_what_becomes_of_the_file_once_its_weights_are_in_memory) {
  const TemporaryFolder folder;
  const std::string model = folder.write("model", read_file(tiny_model()));
  const std::vector<std::string> flags = {"-p", "zzqq", "--ignore-eos", "-c", "300", "--temp", "0", "--no-perf"};
  const auto run_of = [&](const std::string& path) {
    std::vector<std::string> arguments = leanstream({"run", "-m", path});
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  };
  Process process(run_of(model));
  ASSERT_TRUE(process.wait_for_output("zzqq"));  // the prompt is shown after loading
  std::filesystem::resize_file(model, 0);
  std::filesystem::remove(model);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.signal << outcome.err;
  EXPECT_EQ(outcome.out, run_process(run_of(tiny_model())).out);
}

TEST(Run, says_that_the_system_has_no_threads_to_give) {
  // As root the limit does not count, so root runs it as somebody else.
  const std::string limited = "ulimit -u 1; exec '" LEANSTREAM_BINARY "' run -t 4 -p a -m '" + tiny_model() + "'";
  std::vector<std::string> arguments = {"/bin/bash", "-c", limited};
  if (getuid() == 0) arguments.insert(arguments.begin(), {"/usr/bin/setpriv", "--reuid", "65533", "--clear-groups"});
  const Outcome outcome = run_process(arguments);
  if (outcome.err.find("leanstream: ") == std::string::npos)
    GTEST_SKIP() << "another user cannot run the program here: " << outcome.err;
  expect_failure(outcome, "cannot start the thread leanstream-");
}

TEST(Run, repeats_a_text_for_its_seed) {
  const auto sample = [](const char* seed) {
    return run_leanstream({"run", "-m", tiny_model(), "-p", "a", "-n", "16", "-s", seed, "--temp", "1.5"}).out;
  };
  EXPECT_EQ(sample("7"), sample("7"));
  EXPECT_NE(sample("7"), sample("8"));
}

TEST(Run, answers_wrong_usage_with_one_line_and_2) {
  const std::string model = tiny_model();
  expect_usage_error(run_leanstream({"run", "--bogus"}), "--bogus");
  expect_usage_error(run_leanstream({"run", "-p", "x"}), "no model");
  expect_usage_error(run_leanstream({}), "no command");
  expect_usage_error(run_leanstream({"walk"}), "walk");
  expect_usage_error(run_leanstream({"run", "-m", model, "-p", "x", "stray"}), "stray");
  const std::vector<std::vector<std::string>> bad = {{"--memory", "lots"},
                                                     {"--memory", "0"},
                                                     {"-t", "0"},
                                                     {"-t", "257"},
                                                     {"-c", "-5"},
                                                     {"-c", "x"},
                                                     {"-n", "-2"},
                                                     {"--temp", "nan"},
                                                     {"--temp", "-1"},
                                                     {"--top-p", "1.5"},
                                                     {"--min-p", "-0.1"},
                                                     {"--top-k", "many"},
                                                     {"--repeat-penalty", "0"},
                                                     {"--kv-type", "q4_0"},
                                                     {"-ctk", "q8_0"},
                                                     {"-ctk", "q8_0", "-ctv", "f16"},
                                                     {"-b", "0"},
                                                     {"-ub", "0"},
                                                     {"-r", ""},
                                                     {"--backend", "tpu"},
                                                     {"--sparsity", "0.5"},
                                                     {"--trace-top", "0.2"},
                                                     {"-n"}};
  for (const std::vector<std::string>& flags : bad) {
    SCOPED_TRACE(flags.front() + " " + flags.back());
    std::vector<std::string> arguments = {"run", "-m", model, "-p", "x"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    expect_usage_error(run_leanstream(arguments), "");
  }
}

TEST(Run, takes_llama_cpp_spellings) {
  const std::string expected = run_leanstream(greedy({"-p", "x", "-c", "128", "-t", "1"})).out;
  const Outcome outcome = run_leanstream(
      {"run",     "--model",   tiny_model(), "--prompt",    "x",           "--n-predict", "8",   "--ctx-size",
       "128",     "--threads", "1",          "--temp",      "0",           "--seed",      "1",   "-ngl",
       "99",      "-fa",       "on",         "-b",          "512",         "-ub",         "256", "--no-mmap",
       "--mlock", "-no-cnv",   "-st",        "--no-warmup", "--simple-io", "-ctk",        "f16", "-ctv",
       "f16",     "-lm",       "mmap",       "-tb",         "2",           "-e"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected);
  EXPECT_THAT(outcome.err, HasSubstr("note: "));
  EXPECT_THAT(outcome.err, HasSubstr("--n-gpu-layers"));
  EXPECT_EQ(outcome.err.find("note: "), outcome.err.rfind("note: "));  // one note for all
}

TEST(Run, keeps_values_that_look_like_flags) {
  EXPECT_THAT(run_leanstream(greedy({"-p", "-ngl"})).out, StartsWith("-ngl"));
  EXPECT_THAT(run_leanstream(greedy({"-p", "--help"})).out, StartsWith("--help"));
  EXPECT_THAT(run_leanstream(greedy({"-p", "[a,b]"})).out, StartsWith("[a,b]"));
  EXPECT_THAT(run_leanstream(greedy({"--prompt=run"})).out, StartsWith("run"));
}

TEST(Run, refuses_cuda_where_the_build_has_none) {
  expect_failure(run_leanstream(greedy({"-p", "x", "--backend", "cuda"})), "no CUDA");
  EXPECT_EQ(run_leanstream(greedy({"-p", "x", "--backend", "cpu"})).exit_code, 0);
}

TEST(Run, says_which_file_it_could_not_use) {
  const TemporaryFolder folder;
  expect_failure(run_leanstream({"run", "-m", folder.path("absent.gguf"), "-p", "x"}), "absent.gguf");
  expect_failure(run_leanstream({"run", "-m", folder.write("bad.gguf", "no model"), "-p", "x"}), "bad.gguf");
  expect_failure(run_leanstream(greedy({"-f", folder.path("absent.txt")})), "absent.txt");
  expect_failure(run_leanstream(greedy({"-p", "x", "--stats-json", folder.path("no/such/s.json")})), "no/such/s.json");
  expect_failure(run_leanstream(greedy({"-p", "x", "--log-file", "/proc/no/log"})), "/proc/no/log");
}

TEST(Run, logs_to_a_file_and_hides_what_is_not_an_error) {
  const TemporaryFolder folder;
  const Outcome outcome = run_leanstream(greedy({"-p", "x", "--log-disable", "--log-file", folder.path("log"), "-v"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, StartsWith("x"));
  EXPECT_THAT(read_file(folder.path("log")), HasSubstr("prompt eval"));
}

TEST(Run, continues_the_demo_model_s_text) {
  if (!have_demo_model()) GTEST_SKIP() << demo_model() << " is not there";
  const Outcome outcome =
      run_leanstream({"run", "-m", demo_model(), "-p", "The io_uring interface", "-n", "5", "--temp", "0"});
  EXPECT_EQ(outcome.out, "The io_uring interface is used to implement the");
}

}  // namespace
}  // namespace leanstream::test
