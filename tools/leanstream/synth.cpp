#include "tools/leanstream/convert/synth.h"

#include <memory>

#include "commands.h"
#include "interrupt.h"
#include "log.h"
#include "write_progress.h"

namespace leanstream::cli {
namespace {

struct SynthOptions {
  convert::SynthParams params;
  std::string type = "q4_0";
  int64_t seed = 1;
  LogOptions log;
};

int synth(SynthOptions& options) {
  if (options.params.preset.empty()) return report_usage("no shape: give --preset NAME");
  if (options.params.output.empty()) return report_usage("no output: give -o FILE");
  const std::optional<WeightType> type = convert::parse_weight_type(options.type);
  if (!type) return report_usage("--type " + options.type + ": no such type of weights");
  if (const Status log = start_log(options.log, {}); !log.ok()) return report_failure(log);
  options.params.type = *type;
  options.params.seed = static_cast<uint64_t>(options.seed);
  const InterruptScope interrupts_cancel;
  return write_with_progress(options.params.output, [&](convert::Progress progress) {
    options.params.progress = std::move(progress);
    return convert::synth(options.params);
  });
}

}  // namespace

Command synth_command() {
  auto options = std::make_shared<SynthOptions>();
  const auto add_flags = [options](Flags& flags) {
    std::string presets;
    for (const std::string& name : convert::synth_presets()) presets += (presets.empty() ? "" : ", ") + name;
    flags.choice("--preset", "NAME", convert::synth_presets(), options->params.preset, "The shape: " + presets);
    flags.text("--type", "TYPE", options->type, "Type of the weights: f32, f16, bf16, q4_0 ... q6_k (default q4_0)");
    flags.text("-o,--output", "FILE", options->params.output, "Where to write it");
    flags.number("-s,--seed", "N", options->seed, 0, INT64_MAX, "The same seed gives the same file (default 1)");
    add_log_options(flags, options->log);
    flags.footer(
        "Random weights of a real shape: to measure speed, never quality.\n\n"
        "  leanstream synth --preset mistral-7b --type q4_0 -o mistral-7b-random.gguf");
  };
  return {"synth", "Make a random-weight model of a given shape", add_flags, [options] { return synth(*options); }};
}

}  // namespace leanstream::cli
