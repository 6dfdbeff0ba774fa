// info, plan, tokenize, perplexity, synth, quantize, pack, and what stands before any command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command_line.h"

namespace leanstream::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TopLevel, helps_everywhere) {
  for (const char* command : {"", "run", "chat", "info", "plan", "tokenize", "perplexity", "bench", "synth", "quantize",
                              "pack", "cache-sim"}) {
    std::vector<std::string> arguments = {"-h"};
    if (*command) arguments.insert(arguments.begin(), command);
    const Outcome outcome = run_leanstream(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Usage: leanstream ") + command)) << command;
    EXPECT_THAT(outcome.err, IsEmpty());
  }
}

TEST(TopLevel, says_its_version_and_its_devices) {
  EXPECT_THAT(run_leanstream({"--version"}).out,
              ::testing::MatchesRegex("leanstream [0-9]+\\.[0-9]+\\.[0-9]+ \\(.+\\)\n"));
  EXPECT_THAT(run_leanstream({"--list-devices"}).out, ::testing::StartsWith("cpu: "));
}

TEST(TopLevel, refuses_a_stack_that_is_too_small_in_one_sentence) {
  const auto with_stack = [](const char* kib, const std::string& flags) {
    return run_process({"/bin/bash", "-c",
                        std::string("ulimit -s ") + kib + "; exec '" LEANSTREAM_BINARY "' run --temp 0 -m '" +
                            tiny_model() + "' -n 2 " + flags});
  };
  const std::string long_prompt = "-t 3 -p '" + std::string(300, 'x') + "'";
  const Outcome small = with_stack("64", long_prompt);
  EXPECT_EQ(small.exit_code, 1) << small.signal << small.err;
  ASSERT_EQ(error_lines(small).size(), 1u) << small.err;
  EXPECT_THAT(error_lines(small)[0], HasSubstr("stack"));
  const Outcome enough = with_stack("512", long_prompt);
  EXPECT_EQ(enough.exit_code, 0) << enough.signal << enough.err;
}

TEST(Info, shows_a_table_and_one_json_object) {
  EXPECT_THAT(run_leanstream({"info", tiny_model()}).out, HasSubstr("architecture   llama"));
  const json object = json::parse(run_leanstream({"info", "-m", tiny_model(), "--json"}).out);
  EXPECT_EQ(object.at("info").at("architecture"), "llama");
  EXPECT_EQ(object.at("metadata").at("general.architecture"), "llama");
  EXPECT_EQ(object.at("metadata").at("tokenizer.ggml.tokens").at("length"), object.at("info").at("n_vocab"));
  EXPECT_FALSE(object.at("tensors").empty());
  const json all = json::parse(run_leanstream({"info", tiny_model(), "--json", "--max-array", "0"}).out);
  EXPECT_EQ(all.at("metadata").at("tokenizer.ggml.tokens").size(), object.at("info").at("n_vocab"));
}

TEST(Plan, sums_its_parts_and_answers_with_its_exit_code) {
  const Outcome fits = run_leanstream({"plan", "-m", tiny_model(), "--memory", "1G", "-c", "64", "--json"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  const json plan = json::parse(fits.out);
  EXPECT_EQ(plan.at("fits"), true);
  EXPECT_EQ(plan.at("context"), 64);
  EXPECT_EQ(plan["weights_bytes"].get<int64_t>() + plan["kv_bytes"].get<int64_t>() +
                plan["buffers_bytes"].get<int64_t>() + plan["fixed_bytes"].get<int64_t>(),
            plan["total_bytes"].get<int64_t>());
  EXPECT_EQ(plan.at("budget_bytes"), 1 << 30);

  const std::string too_little = std::to_string(plan["total_bytes"].get<int64_t>() - (2 << 20));
  const Outcome refused = run_leanstream({"plan", "-m", tiny_model(), "--memory", too_little, "-c", "64", "--json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(json::parse(refused.out).at("fits"), false);
  EXPECT_EQ(error_lines(refused).size(), 1u);
}

TEST(Plan, takes_a_budget_as_a_share_of_the_file) {
  const json plan = json::parse(run_leanstream({"plan", "-m", tiny_model(), "--memory", "20000%", "--json"}).out);
  EXPECT_EQ(plan.at("budget_bytes"), 200 * std::filesystem::file_size(tiny_model()));
}

TEST(Plan, is_kept_by_run_at_the_least_budget_it_names) {
  const json plan =
      json::parse(run_leanstream({"plan", "-m", tiny_model(), "--memory", "1G", "-c", "64", "--json"}).out);
  const auto least = plan.at("least_budget_bytes").get<int64_t>();
  const TemporaryFolder folder;
  const Outcome run = run_leanstream({"run", "-m", tiny_model(), "-c", "64", "--memory", std::to_string(least), "-p",
                                      "a", "-n", "4", "--stats-json", folder.path("s")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LE(json::parse(read_file(folder.path("s"))).at("peak_rss_bytes"), least);
}

TEST(Plan, bounds_the_speed_by_the_memory_it_measures) {
  const json plan = json::parse(run_leanstream({"plan", "-m", tiny_model(), "--measure", "--json"}).out);
  const double bound = plan.at("memory_read_gbps").get<double>() * 1e9 / plan.at("bytes_per_token").get<double>();
  EXPECT_NEAR(plan.at("tokens_per_second_bound").get<double>(), bound, bound * 1e-6);
}

TEST(Tokenize, prints_one_json_array) {
  const auto tokens = [](std::vector<std::string> more, const ProcessOptions& options = {}) {
    more.insert(more.begin(), {"tokenize", "-m", tiny_chat_model()});
    const Outcome outcome = run_leanstream(more, options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
    return json::parse(outcome.out);
  };
  const json plain = tokens({"-p", "a\\nb"});
  EXPECT_EQ(tokens({}, {.input = "a\nb"}), plain);
  EXPECT_GT(tokens({}, {.input = "a\nb\n"}).size(), plain.size());  // a final newline counts
  EXPECT_EQ(tokens({"-p", ""}), json::array());
  EXPECT_GT(tokens({"-p", "<|im_end|>"}).size(), 1u);
  EXPECT_EQ(tokens({"-p", "<|im_end|>", "--special"}).size(), 1u);
  const json with_bos = json::parse(run_leanstream({"tokenize", "-m", tiny_model(), "-p", "x", "--bos"}).out);
  const json without = json::parse(run_leanstream({"tokenize", "-m", tiny_model(), "-p", "x"}).out);
  EXPECT_EQ(with_bos.size(), without.size() + 1);
}

TEST(Perplexity, counts_the_second_half_of_each_window) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word number " + std::to_string(i * 7919) + ", ";
  const std::string file = folder.write("text", text);
  const Outcome outcome =
      run_leanstream({"perplexity", "-m", tiny_model(), "-f", file, "-c", "32", "--chunks", "3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  ASSERT_EQ(result.size(), 4u);
  EXPECT_EQ(result.at("chunks"), 3);
  EXPECT_EQ(result.at("tokens"), 3 * 15);  // predictions of positions 17 to 31
  EXPECT_NEAR(result.at("ppl").get<double>(), std::exp(result.at("nll").get<double>()), 1e-6);
  EXPECT_THAT(run_leanstream({"perplexity", "-m", tiny_model(), "-f", file, "-c", "32"}).out, HasSubstr("perplexity "));
}

TEST(Perplexity, refuses_a_text_shorter_than_a_window_with_both_numbers) {
  const Outcome outcome = run_leanstream({"perplexity", "-m", tiny_model(), "-p", "a b", "-c", "64"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("one window takes 64"));
}

TEST(Synth, writes_the_same_file_for_a_seed_or_nothing) {
  const TemporaryFolder folder;
  const auto make = [&](const char* name, const char* seed) {
    EXPECT_EQ(run_leanstream({"synth", "--preset", "tiny", "-o", folder.path(name), "-s", seed}).exit_code, 0);
    return read_file(folder.path(name));
  };
  const std::string first = make("a", "3");
  EXPECT_EQ(make("b", "3"), first);
  EXPECT_NE(make("c", "4"), first);
  EXPECT_EQ(run_leanstream({"synth", "--preset", "tiny", "-o", folder.path("no/such/d")}).exit_code, 1);
  EXPECT_EQ(run_leanstream({"synth", "--preset", "huge", "-o", folder.path("e")}).exit_code, 2);
  EXPECT_EQ(run_leanstream({"synth", "--preset", "tiny", "--type", "q9", "-o", folder.path("e")}).exit_code, 2);
  EXPECT_EQ(run_leanstream({"synth", "--preset", "tiny"}).exit_code, 2);
  EXPECT_EQ(folder.names().size(), 3u);
}

TEST(Synth, says_that_the_disk_is_full_and_leaves_nothing) {
  const TemporaryFolder folder;
  // The file-size limit stands for the full disk: the write fails in the middle.
  const std::string command = "trap '' XFSZ; ulimit -f 512; exec '" LEANSTREAM_BINARY
                              "' synth --preset tiny --type f32 -o '" +
                              folder.path("x.gguf") + "'";
  const Outcome outcome = run_process({"/bin/bash", "-c", command});
  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
  EXPECT_THAT(error_lines(outcome)[0], HasSubstr("File too large"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Output, past_the_file_size_limit_is_one_sentence_and_no_signal) {
  const TemporaryFolder folder;
  const auto limited = [](const std::string& kib, const std::string& arguments) {
    return run_process({"/bin/bash", "-c", "ulimit -f " + kib + "; exec '" LEANSTREAM_BINARY "' " + arguments});
  };
  const Outcome synth = limited("512", "synth --preset tiny --type f32 -o '" + folder.path("x.gguf") + "'");
  const Outcome quantize = limited("64", "quantize -m '" + tiny_model() + "' -o '" + folder.path("y.gguf") + "'");
  const Outcome stats =
      limited("0", "run -m '" + tiny_model() + "' -p a -n 1 --temp 0 --stats-json '" + folder.path("s") + "'");
  for (const Outcome& outcome : {synth, quantize, stats}) {
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_EQ(outcome.exit_code, 1);
    ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
    EXPECT_THAT(error_lines(outcome)[0], HasSubstr("File too large"));
    EXPECT_THAT(error_lines(outcome)[0], ::testing::Not(HasSubstr(".tmp")));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(TopLevel, refuses_what_is_no_regular_file_as_a_model_at_once) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& model : {fifo, folder.path("."), std::string("/dev/null"), std::string("/dev/zero")}) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"run", "-p", "a"},
                                                    {"info"},
                                                    {"plan"},
                                                    {"tokenize", "-p", "a"},
                                                    {"quantize", "-o", folder.path("out")},
                                                    {"bench"},
                                                    {"chat"}}) {
      SCOPED_TRACE(command[0] + " " + model);
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"-m", model});
      Process process(leanstream(arguments));
      const Outcome outcome = process.finish(std::chrono::seconds(20));
      EXPECT_FALSE(outcome.timed_out);
      EXPECT_EQ(outcome.exit_code, 1);
      ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
      EXPECT_THAT(error_lines(outcome)[0], HasSubstr("not a regular file"));
    }
  }
}

TEST(Quantize, writes_a_model_that_runs) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_leanstream({"quantize", "-m", tiny_model(), "--type", "q4_0", "-o", folder.path("q.gguf"), "-t", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(run_leanstream({"info", folder.path("q.gguf"), "--json"}).out).at("info").at("weight_type"),
            "Q4_0");
  EXPECT_EQ(run_leanstream({"run", "-m", folder.path("q.gguf"), "-p", "a", "-n", "2"}).exit_code, 0);
  EXPECT_EQ(run_leanstream({"quantize", "-m", folder.path("absent"), "-o", folder.path("r")}).exit_code, 1);
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(Quantize, refuses_to_replace_the_model_it_reads) {
  const TemporaryFolder folder;
  const std::string bytes = read_file(tiny_model());
  const std::string model = folder.write("model", bytes), link = folder.path("link"), hard = folder.path("hard");
  ASSERT_EQ(symlink("model", link.c_str()), 0);
  ASSERT_EQ(::link(model.c_str(), hard.c_str()), 0);
  for (const std::string& output : {model, link, hard, folder.path("./model")}) {
    const Outcome outcome = run_leanstream({"quantize", "-m", model, "-o", output});
    EXPECT_EQ(outcome.exit_code, 1);
    ASSERT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
    EXPECT_THAT(error_lines(outcome)[0], HasSubstr("it is the model that is read"));
  }
  EXPECT_EQ(read_file(model), bytes);
  EXPECT_EQ(folder.names().size(), 3u);
}

TEST(Pack, writes_a_file_that_gives_the_same_text_and_says_what_it_is) {
  const TemporaryFolder folder;
  const std::string file = folder.path("p.gguf");
  const Outcome outcome = run_leanstream({"pack", "-m", tiny_model(), "-o", file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  const auto text = [](const std::string& model) {
    const Outcome run = run_leanstream({"run", "-m", model, "-p", "a b c", "-n", "24", "--temp", "0", "--ignore-eos"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(text(file), text(tiny_model()));

  const json source = json::parse(run_leanstream({"info", tiny_model(), "--json"}).out);
  const json object = json::parse(run_leanstream({"info", file, "--json"}).out);
  EXPECT_FALSE(source.contains("pack"));
  EXPECT_EQ(object.at("pack").at("kind"), "exact");
  EXPECT_EQ(object.at("pack").at("source").at("bytes"), std::filesystem::file_size(tiny_model()));
  EXPECT_EQ(object.at("pack").at("layers").size(), object.at("info").at("n_layers"));
  for (const char* same : {"parameters", "weight_type", "weight_bytes", "n_layers", "d_ff"})
    EXPECT_EQ(object.at("info").at(same), source.at("info").at(same)) << same;
  EXPECT_THAT(run_leanstream({"info", file}).out, HasSubstr("pack           exact, of "));
}

TEST(Pack, checks_what_it_wrote) {
  const TemporaryFolder folder;
  const std::string file = folder.path("p.gguf");
  ASSERT_EQ(run_leanstream({"pack", "-m", tiny_model(), "-o", file}).exit_code, 0);
  const Outcome good = run_leanstream({"pack", "--check", file});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("tiles are as they were written"));

  const json object = json::parse(run_leanstream({"info", file, "--json"}).out);
  std::string bytes = read_file(file);
  for (const json& tensor : object.at("tensors"))
    if (tensor.at("name") == "blk.1.ffn_tiles") bytes[tensor.at("offset").get<size_t>() + 5] ^= 1;
  const Outcome bad = run_leanstream({"pack", "--check", folder.write("bad.gguf", bytes)});
  EXPECT_EQ(bad.exit_code, 1);
  ASSERT_EQ(error_lines(bad).size(), 1u) << bad.err;
  EXPECT_THAT(error_lines(bad)[0], HasSubstr("tile 0 of 'blk.1.ffn_tiles' is damaged"));
  EXPECT_EQ(run_leanstream({"run", "-m", folder.path("bad.gguf"), "-p", "a", "-n", "1"}).exit_code, 1);
}

TEST(Pack, refuses_in_one_sentence_and_leaves_nothing) {
  const TemporaryFolder folder;
  const std::string model = folder.write("m.gguf", read_file(tiny_model()));
  EXPECT_EQ(run_leanstream({"pack"}).exit_code, 2);
  EXPECT_EQ(run_leanstream({"pack", "-m", model}).exit_code, 2);
  EXPECT_EQ(run_leanstream({"pack", "-m", model, "-o", folder.path("p"), "--check", model}).exit_code, 2);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"pack", "-m", model, "-o", model},
                                                    {"pack", "-m", folder.path("absent"), "-o", folder.path("p")},
                                                    {"pack", "-m", model, "-o", folder.path("no/such/p")},
                                                    {"pack", "--check", model}}) {
    const Outcome outcome = run_leanstream(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(error_lines(outcome).size(), 1u) << outcome.err;
  }
  // The file-size limit stands for the full disk.
  const Outcome full = run_process({"/bin/bash", "-c",
                                    "trap '' XFSZ; ulimit -f 512; exec '" LEANSTREAM_BINARY "' pack -m '" + model +
                                        "' -o '" + folder.path("p") + "'"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("File too large"));
  EXPECT_EQ(folder.names().size(), 1u);
  EXPECT_EQ(read_file(model), read_file(tiny_model()));
}

}  // namespace
}  // namespace leanstream::test
