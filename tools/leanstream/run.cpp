#include <memory>

#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "model_options.h"
#include "output.h"
#include "prompt_source.h"
#include "report.h"
#include "sampling_options.h"
#include "text.h"
#include "trace_options.h"

namespace leanstream::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  ContextOptions context;
  PromptOptions prompt;
  GenerationOptions generation;
  TraceOptions trace;
  bool display_prompt = true;
  bool timings = true;
  std::string stats_file;
};

// BOS where the model adds one; an empty prompt begins with BOS if there is any.
Result<std::vector<leanstream_token>> prompt_tokens(const leanstream_model& model, const std::string& prompt) {
  Result<std::vector<leanstream_token>> tokens =
      tokenize(model, prompt, LEANSTREAM_TOKENIZE_BOS | LEANSTREAM_TOKENIZE_SPECIAL);
  if (!tokens.ok() || !tokens->empty()) return tokens;
  const Result<leanstream_model_info> info = model_info(model);
  if (!info.ok()) return info.status();
  if (info->bos < 0)
    return invalid_argument("nothing to begin with: the prompt is empty and the model has no BOS token");
  return std::vector<leanstream_token>{info->bos};
}

// Prefill and generate. Cancelling is no error; whatever was generated until then is on standard output.
Result<leanstream_stop_reason> complete(leanstream_session& session, const std::vector<leanstream_token>& tokens,
                                        const GenerationOptions& options, const StopStrings& stop,
                                        StandardOutput& out) {
  Status status = checked(
      [&](leanstream_error* e) { return leanstream_session_prefill(&session, tokens.data(), tokens.size(), e); });
  if (status.code() == Code::kCancelled) return LEANSTREAM_STOP_CANCELLED;
  if (!status.ok()) return status;

  auto params = with_size<leanstream_generate_params>();
  leanstream_generate_params_init(&params);
  params.max_tokens = options.max_tokens;
  params.ignore_eos = options.ignore_eos;
  stop.apply(params);
  params.text = [](const char* text, size_t length, void* output) -> int {
    return static_cast<StandardOutput*>(output)->write({text, length});
  };
  params.text_user = &out;
  auto result = with_size<leanstream_generate_result>();
  status = checked([&](leanstream_error* e) { return leanstream_session_generate(&session, &params, &result, e); });
  if (!status.ok()) return status;
  return result.reason;
}

int run(const RunOptions& options) {
  for (const Status& usage : {check_usage(options.model), check_usage(options.context), check_usage(options.prompt),
                              check_usage(options.trace)})
    if (!usage.ok()) return report_usage(usage.message());
  if (const Status log = start_log(options.model.log, {options.model.model}); !log.ok()) return report_failure(log);
  if (const Status stats = check_output_file(options.stats_file, options.model.model); !stats.ok())
    return report_failure(stats.with_context("--stats-json"));
  if (const Status trace = check_output_file(options.trace.file, options.model.model); !trace.ok())
    return report_failure(trace.with_context("--trace"));
  const Result<std::string> prompt = read_prompt(options.prompt, FinalNewline::kRemove);
  if (!prompt.ok()) return report_failure(prompt.status());

  const InterruptScope interrupts_cancel;
  std::vector<leanstream_token> tokens;
  const auto prompt_fits = [&](const leanstream_model& model, const leanstream_plan& plan) -> Status {
    Result<std::vector<leanstream_token>> result = prompt_tokens(model, *prompt);
    if (!result.ok()) return result.status();
    tokens = std::move(*result);
    if (tokens.size() <= plan.context) return {};
    return {Code::kContextFull, formatted("the prompt does not fit: it is %zu tokens long and the context holds %u "
                                          "(-c sets it)",
                                          tokens.size(), plan.context)};
  };
  const Result<LoadedModel> loaded = load_model(options.model, options.context, prompt_fits);
  if (!loaded.ok()) return report_failure(loaded.status());
  if (const Status sampling = set_sampling(*loaded->session, options.generation); !sampling.ok())
    return report_failure(sampling);
  if (const Status trace = start_trace(*loaded->session, options.trace); !trace.ok()) return report_failure(trace);

  StandardOutput out;
  if (options.display_prompt) out.write(*prompt);
  Result<leanstream_stop_reason> reason = LEANSTREAM_STOP_CANCELLED;
  if (out.open()) {
    const StopStrings stop(options.generation.stop, options.prompt.escapes);
    reason = complete(*loaded->session, tokens, options.generation, stop, out);
  }
  out.finish_line_on_terminal();
  if (!reason.ok()) return report_failure(reason.status());
  if (const Status trace = finish_trace(*loaded->session, options.trace); !trace.ok()) return report_failure(trace);

  const Result<RunFigures> figures = collect_figures(*loaded->runtime, *loaded->session, *reason);
  if (!figures.ok()) return report_failure(figures.status());
  if (options.timings && !out.reader_gone()) log_timings(*figures);
  if (!options.stats_file.empty()) {
    const Status written = write_file(options.stats_file, stats_json(*figures));
    if (!written.ok()) return report_failure(written);
  }
  return interrupted() ? kExitInterrupted : out.exit_code();
}

}  // namespace

Command run_command() {
  auto options = std::make_shared<RunOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.group("Prompt and output");
    add_prompt_options(flags, options->prompt);
    flags.flag("!--no-display-prompt", options->display_prompt, "Print the completion without the prompt before it");
    flags.flag("--perf,!--no-perf", options->timings, "Timings at the end (default); --no-perf: none");
    flags.text("--stats-json", "FILE", options->stats_file, "Write the figures of the run to FILE");
    add_generation_options(flags, options->generation);
    add_trace_options(flags, options->trace);
    add_context_options(flags, options->context);
    add_model_options(flags, options->model);
    // Asked for by scripts that were written for llama.cpp, and the way it is anyway.
    for (const char* name : {"--no-conversation", "--single-turn", "--no-warmup", "--warmup", "--simple-io"})
      flags.quiet(name);
    flags.footer(
        "The prompt is exactly one of -p, -f, --binary-file and standard input, which is read when it is no terminal\n"
        "and none of the others is given. Of -f and standard input one final newline is removed; all other bytes "
        "count.\n"
        "Ctrl-C stops within a moment (exit code 130), a second one at once.\n\n"
        "  leanstream run -m model.gguf -p 'The io_uring interface' -n 64 --temp 0\n"
        "  leanstream run -m model.gguf -f prompt.txt --memory 2G --no-display-prompt > answer.txt");
  };
  return {"run", "Complete a prompt, streaming the text to standard output", add_flags,
          [options] { return run(*options); }};
}

}  // namespace leanstream::cli
