#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

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

// The most tokens a second that a bandwidth allows.
struct Bound {
  double gbps = 0;
  double tokens_per_second = 0;
};

// What is known of them: memory where it was measured, storage where weights are streamed and the drive was.
struct Bounds {
  std::optional<Bound> memory, storage;

  const char* lower_name() const {
    return storage && (!memory || storage->tokens_per_second < memory->tokens_per_second) ? "storage" : "memory";
  }
  std::optional<double> tokens_per_second() const {
    if (storage && memory) return std::min(storage->tokens_per_second, memory->tokens_per_second);
    return storage  ? std::optional(storage->tokens_per_second)
           : memory ? std::optional(memory->tokens_per_second)
                    : std::nullopt;
  }
};

struct NamedPart {
  const char* name;
  leanstream_plan_part part;
};

std::array<NamedPart, 5> parts_of(const leanstream_plan& plan) {
  return {{{"embedding", plan.embedding},
           {"attention", plan.attention},
           {"mlp", plan.mlp},
           {"output", plan.output},
           {"norms", plan.norms}}};
}

Bound bound_of(double bytes_per_s, uint64_t bytes_per_token) {
  return {bytes_per_s / 1e9, bytes_per_s / static_cast<double>(bytes_per_token)};
}

std::string plan_json(const leanstream_plan& plan, const Bounds& bounds) {
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
      {"ring_bytes", plan.ring_bytes},
      {"streamed_bytes", plan.streamed_bytes},
      {"request_bytes", plan.request_bytes},
      {"storage_gbps", plan.storage_bytes_per_s / 1e9},
  };
  for (const NamedPart& part : parts_of(plan))
    json["parts"][part.name] = {{"bytes", part.part.bytes}, {"resident_bytes", part.part.resident_bytes}};
  if (bounds.memory) json["memory_read_gbps"] = bounds.memory->gbps;
  if (const auto speed = bounds.tokens_per_second()) {
    json["tokens_per_second_bound"] = *speed;
    json["bound_by"] = bounds.lower_name();
  }
  return json.dump(2) + "\n";
}

std::string plan_table(const leanstream_plan& plan, const Bounds& bounds) {
  std::string text;
  const auto row = [&](const char* label, uint64_t bytes, const std::string& remark) {
    text +=
        formatted("%-12s%10s%s%s\n", label, format_bytes(bytes).c_str(), remark.empty() ? "" : "  ", remark.c_str());
  };
  const auto remark = [](const NamedPart& each) -> std::string {
    const leanstream_plan_part& part = each.part;
    if (part.resident_bytes == part.bytes) return "resident";
    if (each.part.resident_bytes == 0)
      return std::string(each.name) == "embedding" ? "rows read by demand" : "streamed";
    return formatted("%s resident, the rest streamed", format_bytes(part.resident_bytes).c_str());
  };
  for (const NamedPart& each : parts_of(plan))
    if (each.part.bytes != 0) row(each.name, each.part.bytes, remark(each));
  text += "\n";
  row("weights", plan.weights_bytes, "resident");
  if (plan.ring_bytes != 0) row("ring", plan.ring_bytes, "for streamed weights on their way");
  row("KV cache", plan.kv_bytes, formatted("%u positions", plan.context));
  row("buffers", plan.buffers_bytes, "activations, logits, vocabulary");
  row("process", plan.fixed_bytes, "");
  row("total", plan.total_bytes, "");
  row("budget", plan.budget_bytes, plan.fits ? "fits" : "does not fit");
  if (!plan.fits) row("least", plan.least_budget_bytes, "is the smallest budget that works");
  text += "\n";
  row("per token", plan.bytes_per_token, "of weights are used to decode one token");
  if (plan.streamed_bytes != 0) row("", plan.streamed_bytes, "of them come from the drive");
  if (bounds.storage)
    text +=
        formatted("storage     at most %.1f tok/s: the drive gives %.2f GB/s in reads of %s\n",
                  bounds.storage->tokens_per_second, bounds.storage->gbps, format_bytes(plan.request_bytes).c_str());
  if (bounds.memory)
    text += formatted("memory      at most %.1f tok/s: it is read at %.1f GB/s\n", bounds.memory->tokens_per_second,
                      bounds.memory->gbps);
  if (const auto speed = bounds.tokens_per_second(); speed && plan.fits)
    text += formatted("speed       at most %.1f tok/s, bound by %s\n", *speed, bounds.lower_name());
  return text;
}

int plan(const PlanOptions& options) {
  for (const Status& usage : {check_usage(options.model), check_usage(options.context)})
    if (!usage.ok()) return report_usage(usage.message());
  if (const Status log = start_log(options.model.log, {options.model.model}); !log.ok()) return report_failure(log);
  const Result<Runtime> runtime = create_runtime(options.model);
  if (!runtime.ok()) return report_failure(runtime.status());
  const Result<Model> model = open_model(**runtime, options.model.model, LEANSTREAM_LOAD_METADATA);
  if (!model.ok()) return report_failure(model.status());
  const leanstream_session_params params = session_params(options.context);
  auto result = with_size<leanstream_plan>();
  const Status status =
      checked([&](leanstream_error* e) { return leanstream_model_plan(model->get(), &params, &result, e); });
  if (!status.ok()) return report_failure(status);

  Bounds bounds;
  if (result.streamed_bytes > 0 && result.storage_bytes_per_s > 0)
    bounds.storage = bound_of(result.storage_bytes_per_s, result.streamed_bytes);
  if (options.measure && result.bytes_per_token > 0) {
    const Result<leanstream_runtime_info> info = runtime_info(**runtime);
    if (!info.ok()) return report_failure(info.status());
    if (const double gbps = memory_read_gbps(info->threads); gbps > 0)
      bounds.memory = bound_of(gbps * 1e9, result.bytes_per_token);
    else
      log_note("--measure has no effect: the system has no memory or no threads to give");
  }
  StandardOutput out;
  out.write(options.json ? plan_json(result, bounds) : plan_table(result, bounds));
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
