#include <algorithm>
#include <memory>

#include "bench_report.h"
#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "log.h"
#include "output.h"
#include "report.h"

namespace leanstream::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> models;
  std::vector<std::string> memory = {""};
  std::vector<uint32_t> threads = {0};
  BenchSettings settings{{512}, {128}, 5, true, {}};
  bool cold_start = false;
  std::string format = "md";
  ModelOptions common;
  ContextOptions context;
};

std::vector<ModelOptions> configurations(const BenchOptions& options) {
  std::vector<ModelOptions> all;
  for (const std::string& model : options.models) {
    for (const std::string& memory : options.memory) {
      for (const uint32_t threads : options.threads) {
        ModelOptions one = options.common;
        one.model = model;
        one.memory = memory;
        one.threads = threads;
        all.push_back(std::move(one));
      }
    }
  }
  return all;
}

int bench(BenchOptions& options) {
  if (options.models.empty()) return report_usage("no model: give -m FILE");
  const std::vector<ModelOptions> all = configurations(options);
  for (const ModelOptions& one : all)
    if (const Status usage = check_usage(one); !usage.ok()) return report_usage(usage.message());
  if (const Status usage = check_usage(options.context); !usage.ok()) return report_usage(usage.message());
  const auto nothing = [](const std::vector<uint32_t>& lengths) {
    return std::all_of(lengths.begin(), lengths.end(), [](uint32_t length) { return length == 0; });
  };
  if (nothing(options.settings.prompt_lengths) && nothing(options.settings.generation_lengths))
    return report_usage("nothing to measure: -p and -n are 0");
  if (const Status usage = check_usage(options.settings.trace); !usage.ok()) return report_usage(usage.message());
  if (!options.settings.trace.file.empty() && all.size() > 1)
    return report_usage("--trace records one configuration: give one model, budget and thread count");
  if (const Status log = start_log(options.common.log, options.models); !log.ok()) return report_failure(log);
  if (const Status trace = check_output_file(options.settings.trace.file, options.models.front()); !trace.ok())
    return report_failure(trace.with_context("--trace"));
  say_without_effect(options.common.without_effect);

  options.settings.warm_up = !options.cold_start;
  const InterruptScope interrupts_cancel;
  BenchReport report(options.format);
  StandardOutput out;
  int exit_code = kExitOk;
  for (const ModelOptions& one : all) {
    const Result<BenchResult> result = measure(one, options.context, options.settings);
    if (result.ok()) {
      if (!out.write(report.rows(*result))) break;
      continue;
    }
    exit_code = report_failure(result.status());  // the others are measured nevertheless
    if (exit_code == kExitInterrupted) break;
  }
  out.write(report.end());
  return exit_code != kExitOk ? exit_code : out.exit_code();
}

}  // namespace

Command bench_command() {
  auto options = std::make_shared<BenchOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.group("Benchmark");
    flags.list("-m,--model", "FILE[,FILE]", options->models, "GGUF files");
    flags.list("-p,--n-prompt", "N[,N]", options->settings.prompt_lengths, 0, 1u << 24,
               "Prompts to process, in tokens; 0 = none (default 512)");
    flags.list("-n,--n-gen", "N[,N]", options->settings.generation_lengths, 0, 1u << 24,
               "Tokens to decode one by one; 0 = none (default 128)");
    flags.number("-r,--repetitions", "N", options->settings.repetitions, 1, 10000, "Samples of each test (default 5)");
    flags.choice("-o,--output", "FORMAT", {"md", "csv", "json", "jsonl"}, options->format,
                 "md, csv, json or jsonl (default md)");
    flags.flag("--no-warmup", options->cold_start, "Count the first run of each test too");
    flags.list("--memory", "SIZE[,SIZE]", options->memory,
               "Budgets: 2G, 800M, or 60% of the model file\n(default: what is available, less 10 %)");
    flags.list("-t,--threads", "N[,N]", options->threads, 1, 256, "Compute threads (default: one per core)");
    flags.choice("--backend", "NAME", {"auto", "cpu", "cuda"}, options->common.backend,
                 "Where to compute: auto, cpu, cuda (default auto)");
    add_storage_options(flags, options->common);
    add_context_options(flags, options->context);
    add_trace_options(flags, options->settings.trace);
    add_log_options(flags, options->common.log);
    add_llama_cpp_flags(flags, options->common.without_effect);
    flags.group("For comparing");
    add_comparing_options(flags, options->common);
    flags.footer(
        "Rows are named as llama-bench names them: pp512 processes a prompt of 512 tokens, tg128 decodes 128; random\n"
        "tokens, an empty context each time. Loading is timed twice: cold, after asking the system to forget the "
        "file's\n"
        "pages (unknown where it did not), and warm. JSON has every sample.\n\n"
        "  leanstream bench -m model.gguf -p 512 -n 128 -o json\n"
        "  leanstream bench -m a.gguf,b.gguf --memory 2G,4G -t 1,2");
  };
  return {"bench", "Measure speed, memory and loading", add_flags, [options] { return bench(*options); }};
}

}  // namespace leanstream::cli
