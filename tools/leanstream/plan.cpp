#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "memory_bandwidth.h"
#include "model_options.h"
#include "output.h"
#include "text.h"

namespace leanstream::cli {
namespace {

struct PlanOptions {
  ModelOptions model;
  ContextOptions context;
  bool json = false;
  bool measure = false;
};

// The most tokens a second that the memory allows, and the bandwidth that it follows from.
struct Bound {
  double read_gbps = 0;
  double tokens_per_second = 0;
};

std::string plan_json(const leanstream_plan& plan, const std::optional<Bound>& bound) {
  nlohmann::ordered_json json = {
      {"fits", plan.fits != 0},
      {"context", plan.context},
      {"weights_bytes", plan.weights_bytes},
      {"kv_bytes", plan.kv_bytes},
      {"buffers_bytes", plan.buffers_bytes},
      {"fixed_bytes", plan.fixed_bytes},
      {"total_bytes", plan.total_bytes},
      {"budget_bytes", plan.budget_bytes},
      {"least_budget_bytes", plan.least_budget_bytes},
      {"bytes_per_token", plan.bytes_per_token},
  };
  if (bound) {
    json["memory_read_gbps"] = bound->read_gbps;
    json["tokens_per_second_bound"] = bound->tokens_per_second;
  }
  return json.dump(2) + "\n";
}

std::string plan_table(const leanstream_plan& plan, const std::optional<Bound>& bound) {
  std::string text;
  const auto row = [&](const char* label, uint64_t bytes, const std::string& remark) {
    text +=
        formatted("%-12s%10s%s%s\n", label, format_bytes(bytes).c_str(), remark.empty() ? "" : "  ", remark.c_str());
  };
  row("weights", plan.weights_bytes, "resident");
  row("KV cache", plan.kv_bytes, formatted("%u positions", plan.context));
  row("buffers", plan.buffers_bytes, "activations, logits, vocabulary");
  row("process", plan.fixed_bytes, "");
  row("total", plan.total_bytes, "");
  row("budget", plan.budget_bytes, plan.fits ? "fits" : "does not fit");
  row("per token", plan.bytes_per_token, "of weights are read to decode one token");
  if (bound)
    text += formatted("speed       at most %.1f tok/s: memory is read at %.1f GB/s\n", bound->tokens_per_second,
                      bound->read_gbps);
  return text;
}

int plan(const PlanOptions& options) {
  for (const Status& usage : {check_usage(options.model), check_usage(options.context)})
    if (!usage.ok()) return report_usage(usage.message());
  if (const Status log = start_log(options.model.log); !log.ok()) return report_failure(log);
  const Result<Runtime> runtime = create_runtime(options.model);
  if (!runtime.ok()) return report_failure(runtime.status());
  const Result<Model> model = open_model(**runtime, options.model.model, LEANSTREAM_LOAD_METADATA);
  if (!model.ok()) return report_failure(model.status());
  const leanstream_session_params params = session_params(options.context);
  auto result = with_size<leanstream_plan>();
  const Status status =
      checked([&](leanstream_error* e) { return leanstream_model_plan(model->get(), &params, &result, e); });
  if (!status.ok()) return report_failure(status);

  std::optional<Bound> bound;
  if (options.measure && result.bytes_per_token > 0) {
    const Result<leanstream_runtime_info> info = runtime_info(**runtime);
    if (!info.ok()) return report_failure(info.status());
    const double gbps = memory_read_gbps(info->threads);
    if (gbps > 0) {
      bound = Bound{gbps, gbps * 1e9 / static_cast<double>(result.bytes_per_token)};
    } else {
      log_note("--measure has no effect: the system has no memory or no threads to give");
    }
  }
  StandardOutput out;
  out.write(options.json ? plan_json(result, bound) : plan_table(result, bound));
  if (!out.open()) return out.exit_code();
  return result.fits ? kExitOk : report_failure(does_not_fit(result));
}

}  // namespace

Command plan_command() {
  auto options = std::make_shared<PlanOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.flag("--json", options->json, "One JSON object");
    flags.flag("--measure", options->measure,
               "Measure the memory's read bandwidth, which bounds the tokens per second");
    add_context_options(flags, options->context);
    add_model_options(flags, options->model);
    flags.footer(
        "Reads the head of the file only. Exit code 0 when the model fits, 1 when it does not: `plan ... && run "
        "...`.\n\n"
        "  leanstream plan -m model.gguf --memory 2G -c 8192");
  };
  return {"plan", "Say what running a model takes, and whether that fits", add_flags,
          [options] { return plan(*options); }};
}

}  // namespace leanstream::cli
