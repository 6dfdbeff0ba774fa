#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cache/policies.h"
#include "cache/simulate.h"
#include "commands.h"
#include "log.h"
#include "model_options.h"
#include "model_pieces.h"
#include "output.h"
#include "text.h"
#include "trace/exact_trace.h"
#include "trace/trace_reader.h"

namespace leanstream::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheSimOptions {
  std::string trace;
  std::string model;
  uint32_t tokens = 32;
  uint32_t neurons_per_piece = 32;
  std::vector<std::string> cache = {"25%", "50%"};
  std::vector<std::string> policies = {"static", "lru", "lfu", "arc", "belady"};
  uint32_t half_life_tokens = 32;
  bool json = false;
  LogOptions log;
};

struct SimResult {
  std::string cache;  // as asked
  uint64_t cache_bytes = 0;
  uint32_t slots = 0;
  std::string policy;
  cache::Misses misses;
  cache::Misses least;  // Belady's
};

Result<trace::Trace> load_trace(const CacheSimOptions& options) {
  if (!options.trace.empty()) {
    Result<trace::Trace> trace = trace::read_trace(options.trace);
    if (trace.ok() && !trace->complete)
      log_note(formatted("%s was not written to its end: its first %llu tokens are used", options.trace.c_str(),
                         static_cast<unsigned long long>(trace->tokens)));
    return trace;
  }
  Result<trace::Header> header = model_pieces(options.model, options.neurons_per_piece);
  if (!header.ok()) return header.status();
  const uint64_t demands = uint64_t{trace::piece_count(*header)} * options.tokens;
  if (demands > trace::kMaxDemands)
    return unsupported(
        formatted("%u tokens of %u pieces are more than are held in memory: give fewer --tokens or more "
                  "--neurons",
                  options.tokens, trace::piece_count(*header)));
  return trace::exact_trace(*std::move(header), options.tokens);
}

std::unique_ptr<cache::Policy> make_policy(const std::string& name, const trace::Trace& trace, uint32_t n_slots,
                                           uint32_t half_life_tokens) {
  const uint32_t n_pieces = trace::piece_count(trace.header);
  if (name == "static") return cache::static_policy(n_pieces, most_demanded(trace.steps, n_pieces, n_slots));
  if (name == "lru") return cache::lru_policy(n_pieces);
  if (name == "arc") return cache::arc_policy(n_pieces, n_slots);
  const uint64_t half_life_steps = uint64_t{half_life_tokens} * trace.header.layers.size();
  return cache::decayed_lfu_policy(n_pieces, static_cast<uint32_t>(std::min<uint64_t>(half_life_steps, UINT32_MAX)));
}

Result<std::vector<SimResult>> run_all(const trace::Trace& trace, const CacheSimOptions& options) {
  const std::vector<uint32_t> piece_bytes = trace::piece_bytes(trace.header);
  const uint32_t slot_bytes = *std::max_element(piece_bytes.begin(), piece_bytes.end());
  std::vector<SimResult> results;
  for (const std::string& size : options.cache) {
    SimResult result;
    result.cache = size;
    const Result<uint64_t> bytes = parse_size(size, trace::total_bytes(trace.header));
    if (!bytes.ok()) return bytes.status().with_context("--cache");
    result.cache_bytes = *bytes;
    result.slots = static_cast<uint32_t>(std::min<uint64_t>(*bytes / slot_bytes, piece_bytes.size()));
    result.least = cache::least_misses(trace.steps, piece_bytes, result.slots);
    for (const std::string& policy : options.policies) {
      result.policy = policy;
      if (policy == "belady") {
        result.misses = result.least;
      } else {
        cache::Cache cache(static_cast<uint32_t>(piece_bytes.size()), result.slots,
                           make_policy(policy, trace, result.slots, options.half_life_tokens));
        result.misses = simulate(trace.steps, piece_bytes, cache, cache::Keep::kWithinStep);
      }
      results.push_back(result);
    }
  }
  return results;
}

double per_token(uint64_t sum, const trace::Trace& trace) {
  return static_cast<double>(sum) / static_cast<double>(trace.tokens);
}

// Nothing where nothing need be missed.
std::optional<double> multiple(uint64_t value, uint64_t of) {
  if (of == 0) return std::nullopt;
  return static_cast<double>(value) / static_cast<double>(of);
}

std::string as_json(const trace::Trace& trace, const std::vector<SimResult>& results) {
  const trace::Header& header = trace.header;
  Json json = {{"trace",
                {{"model", header.model},
                 {"pieces", header.pieces},
                 {"selection", header.selection},
                 {"complete", trace.complete},
                 {"tokens", trace.tokens},
                 {"n_layers", header.layers.size()},
                 {"n_pieces", trace::piece_count(header)},
                 {"total_bytes", trace::total_bytes(header)}}},
               {"results", Json::array()}};
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  for (const SimResult& result : results) {
    json["results"].push_back({
        {"cache", result.cache},
        {"cache_bytes", result.cache_bytes},
        {"slots", result.slots},
        {"policy", result.policy},
        {"demanded_per_token", per_token(result.misses.demanded, trace)},
        {"demanded_bytes_per_token", per_token(result.misses.demanded_bytes, trace)},
        {"miss_ratio", result.misses.ratio()},
        {"missed_bytes_per_token", per_token(result.misses.missed_bytes, trace)},
        {"misses_of_belady", or_null(multiple(result.misses.missed, result.least.missed))},
        {"bytes_of_belady", or_null(multiple(result.misses.missed_bytes, result.least.missed_bytes))},
    });
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Text of a file, in quotes, with what is not printable as JSON spells it.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string as_table(const trace::Trace& trace, const std::vector<SimResult>& results) {
  const trace::Header& header = trace.header;
  std::string text = formatted(
      "%s, pieces %s, demanded %s: %llu tokens of %zu layers, %u pieces, %s\n\n", quoted(header.model).c_str(),
      quoted(header.pieces).c_str(), quoted(header.selection).c_str(), static_cast<unsigned long long>(trace.tokens),
      header.layers.size(), trace::piece_count(header), format_bytes(trace::total_bytes(header)).c_str());
  text += "| cache | slots | policy | missed | x Belady | bytes a token | x Belady |\n|---|---|---|---|---|---|---|\n";
  const auto times = [](std::optional<double> value) { return value ? formatted("%.2f", *value) : std::string(); };
  for (const SimResult& result : results)
    text +=
        formatted("| %s | %u | %s | %.3f | %s | %s | %s |\n", result.cache.c_str(), result.slots, result.policy.c_str(),
                  result.misses.ratio(), times(multiple(result.misses.missed, result.least.missed)).c_str(),
                  format_bytes(static_cast<uint64_t>(per_token(result.misses.missed_bytes, trace))).c_str(),
                  times(multiple(result.misses.missed_bytes, result.least.missed_bytes)).c_str());
  return text;
}

int cache_sim(const CacheSimOptions& options) {
  if (options.trace.empty() == options.model.empty())
    return report_usage(options.trace.empty() ? "nothing to replay: give a trace, or a model with -m"
                                              : "a trace or a model with -m, not both");
  for (const std::string& size : options.cache)
    if (const Result<uint64_t> bytes = parse_size(size, 1000); !bytes.ok())
      return report_usage(bytes.status().with_context("--cache").message());
  const std::vector<std::string> known = CacheSimOptions().policies;
  for (const std::string& policy : options.policies)
    if (std::find(known.begin(), known.end(), policy) == known.end())
      return report_usage("--policy " + policy + ": the policies are static, lru, lfu, arc and belady");
  if (const Status log = start_log(options.log, {options.trace, options.model}); !log.ok()) return report_failure(log);

  const Result<trace::Trace> trace = load_trace(options);
  if (!trace.ok()) return report_failure(trace.status());
  if (trace->steps.all().empty())
    return report_failure(invalid_argument("cannot replay " + options.trace + ": it demands nothing"));
  const Result<std::vector<SimResult>> results = run_all(*trace, options);
  if (!results.ok()) return report_failure(results.status());
  StandardOutput out;
  out.write(options.json ? as_json(*trace, *results) : as_table(*trace, *results));
  return out.exit_code();
}

}  // namespace

Command cache_sim_command() {
  auto options = std::make_shared<CacheSimOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.positional("TRACE", options->trace, "What `--trace` of another command recorded");
    flags.text("-m,--model", "FILE", options->model,
               "Instead of a trace: the order in which exact streaming reads\nthis model's MLP, "
               "every piece for every token");
    flags.number("--tokens", "N", options->tokens, 1, 1u << 20, "Of -m: tokens (default 32)");
    flags.number("--neurons", "N", options->neurons_per_piece, 1, 1u << 20, "Of -m: neurons of a piece (default 32)");
    flags.list("--cache", "SIZE[,SIZE]", options->cache,
               "Cache sizes: 2G, 800M, or 25% of all pieces\n(default 25%,50%)");
    flags.list("--policy", "NAME[,NAME]", options->policies, "static, lru, lfu, arc, belady (default all)");
    flags.number("--half-life", "N", options->half_life_tokens, 1, 1u << 20,
                 "Of lfu: tokens after which a demand counts half\n(default 32)");
    flags.flag("--json", options->json, "One JSON object");
    add_log_options(flags, options->log);
    flags.footer(
        "Replays which pieces of the weights a run demanded against caches of several sizes. missed: the share of\n"
        "demanded pieces that was not cached; x Belady: as a multiple of the least that any policy could miss. static\n"
        "knows the trace's most demanded pieces beforehand, belady all of it.\n\n"
        "  leanstream perplexity -m model.gguf -f text.txt --chunks 8 --trace t.trace --trace-top 0.2\n"
        "  leanstream cache-sim t.trace --cache 10%,25%,50%");
  };
  return {"cache-sim", "Replay a trace of demanded weights against caches", add_flags,
          [options] { return cache_sim(*options); }};
}

}  // namespace leanstream::cli
