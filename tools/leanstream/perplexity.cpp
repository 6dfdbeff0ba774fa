#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "model_options.h"
#include "output.h"
#include "progress.h"
#include "prompt_source.h"
#include "report.h"
#include "text.h"
#include "trace_options.h"

namespace leanstream::cli {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  ContextOptions context{512, {}, {}, {}};
  PromptOptions prompt;
  TraceOptions trace;
  uint32_t chunks = 0;  // 0 = all
  bool json = false;
};

struct Sum {
  double nll = 0;
  double nll_squared = 0;
  uint64_t tokens = 0;
  uint64_t chunks = 0;

  double mean() const { return nll / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean()); }
  // Of the perplexity: that of the mean, carried through exp().
  double standard_error() const {
    const auto n = static_cast<double>(tokens);
    const double variance = nll_squared / n - mean() * mean();
    return n > 1 && variance > 0 ? std::sqrt(variance / (n - 1)) * perplexity() : 0;
  }
};

// llama-perplexity's definition: windows of `window` tokens one after another, each begun afresh, its first token
// replaced by BOS where the model adds one; the predictions of its second half count.
Status score_windows(leanstream_session& session, const std::vector<leanstream_token>& tokens, uint32_t window,
                     uint64_t chunks, leanstream_token bos, Sum& sum) {
  ProgressBar bar("perplexity");
  std::vector<double> nll(window);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    bar.show(static_cast<double>(chunk) / static_cast<double>(chunks));
    const auto begin = tokens.begin() + static_cast<ptrdiff_t>(chunk * window);
    std::vector<leanstream_token> inputs(begin, begin + window);
    if (bos >= 0) inputs.front() = bos;
    Status status = checked([&](leanstream_error* e) { return leanstream_session_truncate(&session, 0, e); });
    if (!status.ok()) return status;
    status = checked(
        [&](leanstream_error* e) { return leanstream_session_score(&session, inputs.data(), window, nll.data(), e); });
    if (!status.ok()) return status;
    for (uint32_t i = window / 2; i + 1 < window; ++i) {
      sum.nll += nll[i];
      sum.nll_squared += nll[i] * nll[i];
      ++sum.tokens;
    }
    ++sum.chunks;
    if (interrupted()) return {Code::kCancelled, "interrupted"};
    bar.hide();
    log_debug(formatted("window %llu of %llu: perplexity so far %.4f", static_cast<unsigned long long>(sum.chunks),
                        static_cast<unsigned long long>(chunks), sum.perplexity()));
  }
  return {};
}

std::string result_text(const Sum& sum, bool json) {
  if (json) {
    const nlohmann::ordered_json object = {
        {"ppl", sum.perplexity()}, {"nll", sum.mean()}, {"tokens", sum.tokens}, {"chunks", sum.chunks}};
    return object.dump() + "\n";
  }
  return formatted("perplexity %.4f +/- %.4f (nll %.5f per token, %llu tokens counted, %llu windows)\n",
                   sum.perplexity(), sum.standard_error(), sum.mean(), static_cast<unsigned long long>(sum.tokens),
                   static_cast<unsigned long long>(sum.chunks));
}

int perplexity(const PerplexityOptions& options) {
  for (const Status& usage : {check_usage(options.model), check_usage(options.context), check_usage(options.prompt),
                              check_usage(options.trace)})
    if (!usage.ok()) return report_usage(usage.message());
  if (const Status log = start_log(options.model.log, {options.model.model}); !log.ok()) return report_failure(log);
  if (const Status trace = check_output_file(options.trace.file, options.model.model); !trace.ok())
    return report_failure(trace.with_context("--trace"));
  const Result<std::string> text = read_prompt(options.prompt, FinalNewline::kRemove);
  if (!text.ok()) return report_failure(text.status());

  const InterruptScope interrupts_cancel;
  const uint32_t window = options.context.context;
  std::vector<leanstream_token> tokens;
  const auto long_enough = [&](const leanstream_model& model, const leanstream_plan&) -> Status {
    Result<std::vector<leanstream_token>> result = tokenize(model, *text, LEANSTREAM_TOKENIZE_BOS);
    if (!result.ok()) return result.status();
    tokens = std::move(*result);
    if (tokens.size() >= window) return {};
    return invalid_argument(formatted("the text is too short: it has %zu tokens and one window takes %u (-c sets it)",
                                      tokens.size(), window));
  };
  const Result<LoadedModel> loaded = load_model(options.model, options.context, long_enough);
  if (!loaded.ok()) return report_failure(loaded.status());
  const Result<leanstream_model_info> info = model_info(*loaded->model);
  if (!info.ok()) return report_failure(info.status());

  const uint64_t available = tokens.size() / window;
  const uint64_t chunks = options.chunks == 0 ? available : std::min<uint64_t>(available, options.chunks);
  if (const Status trace = start_trace(*loaded->session, options.trace); !trace.ok()) return report_failure(trace);
  Sum sum;
  const Status status = score_windows(*loaded->session, tokens, window, chunks, info->adds_bos ? info->bos : -1, sum);
  if (!status.ok() && status.code() != Code::kCancelled) return report_failure(status);
  if (const Status trace = finish_trace(*loaded->session, options.trace); !trace.ok()) return report_failure(trace);
  if (!status.ok()) return report_failure(status);
  StandardOutput out;
  out.write(result_text(sum, options.json));
  return out.exit_code();
}

}  // namespace

Command perplexity_command() {
  auto options = std::make_shared<PerplexityOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.group("Text");
    add_prompt_options(flags, options->prompt);
    flags.number("--chunks", "N", options->chunks, 0, UINT32_MAX, "Windows to score at most; 0 = all (default 0)");
    flags.flag("--json", options->json, "One JSON object: ppl, nll (mean), tokens, chunks");
    flags.group("Context");
    flags.number("-c,--ctx-size", "N", options->context.context, 4, UINT32_MAX, "Tokens of a window (default 512)");
    flags.choice("--kv-type", "TYPE", {"f16", "q8_0"}, options->context.kv_type, "KV cache: f16 or q8_0 (default f16)");
    add_trace_options(flags, options->trace);
    add_model_options(flags, options->model);
    flags.quiet("--no-warmup");
    flags.footer(
        "As llama-perplexity counts: the whole text is tokenized once and cut into windows; each is scored afresh, "
        "its\n"
        "first token replaced by BOS where the model adds one; predictions in its second half count. -v shows the\n"
        "estimate after each window.\n\n"
        "  leanstream perplexity -m model.gguf -f text.txt --chunks 64 --json");
  };
  return {"perplexity", "Measure how well a model predicts a text", add_flags,
          [options] { return perplexity(*options); }};
}

}  // namespace leanstream::cli
