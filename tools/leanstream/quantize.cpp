#include "tools/leanstream/convert/quantize.h"

#include <memory>
#include <thread>

#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "log.h"
#include "write_progress.h"

namespace leanstream::cli {
namespace {

struct QuantizeOptions {
  convert::QuantizeParams params;
  std::string type = "q8_0";
  LogOptions log;
};

int quantize(QuantizeOptions& options) {
  if (options.params.input.empty()) return report_usage("no model: give -m FILE");
  if (options.params.output.empty()) return report_usage("no output: give -o FILE");
  const std::optional<WeightType> type = convert::parse_weight_type(options.type);
  if (!type) return report_usage("--type " + options.type + ": no such type of weights");
  if (const Status log = start_log(options.log, {options.params.input}); !log.ok()) return report_failure(log);
  options.params.type = *type;
  const InterruptScope interrupts_cancel;
  return write_with_progress(options.params.output, [&](convert::Progress progress) {
    options.params.progress = std::move(progress);
    return convert::quantize(options.params);
  });
}

}  // namespace

Command quantize_command() {
  auto options = std::make_shared<QuantizeOptions>();
  options->params.threads = std::max(1u, std::thread::hardware_concurrency());
  const auto add_flags = [options](Flags& flags) {
    flags.text("-m,--model", "FILE", options->params.input, "GGUF file to read; of a split set, its first part");
    flags.text("-o,--output", "FILE", options->params.output, "Where to write it");
    flags.text("--type", "TYPE", options->type, "Type of the matrices: f32, f16, bf16, q4_0 ... q6_k (default q8_0)");
    flags.number("-t,--threads", "N", options->params.threads, 1, 256, "Threads (default: one per core)");
    add_log_options(flags, options->log);
    flags.footer("  leanstream quantize -m model-f16.gguf --type q8_0 -o model-q8_0.gguf");
  };
  return {"quantize", "Write a model with its matrices in another type", add_flags,
          [options] { return quantize(*options); }};
}

}  // namespace leanstream::cli
