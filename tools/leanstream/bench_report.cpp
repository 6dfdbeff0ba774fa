#include "bench_report.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "commit.h"
#include "text.h"

namespace leanstream::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Weight bytes that decoding used per second; of prompts it says nothing, since one reading serves many tokens.
std::optional<double> weight_gbps(const BenchResult& result, const BenchTest& test) {
  if (test.n_generated == 0) return std::nullopt;
  return mean(test.tokens_per_second()) * static_cast<double>(result.stats.bytes_per_token) / 1e9;
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::string utc_now() {
  char text[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Names as llama-bench has them, where it has them.
Json to_json(const BenchResult& result, const BenchTest& test) {
  const std::vector<double> rates = test.tokens_per_second();
  return {
      {"build_version", leanstream_version()},
      {"build_commit", kCommit},
      {"test_time", utc_now()},
      {"model_filename", result.path},
      {"model_architecture", result.model.architecture},
      {"model_type", result.model.weight_type},
      {"model_size", result.model.file_bytes},
      {"model_n_params", result.model.parameters},
      {"backend", result.runtime.backend},
      {"device_name", result.runtime.device_name},
      {"simd", result.runtime.simd},
      {"n_threads", result.runtime.threads},
      {"memory_budget_bytes", result.runtime.memory_budget_bytes},
      {"test", test.name()},
      {"n_prompt", test.n_prompt},
      {"n_gen", test.n_generated},
      {"avg_ts", mean(rates)},
      {"stddev_ts", standard_deviation(rates)},
      {"samples_ts", rates},
      {"samples_ms", test.samples_ms},
      {"ttft_ms", test.n_prompt > 0 ? Json(test.ttft_ms) : Json()},
      {"load_cold_ms", or_null(result.load_cold_ms)},
      {"load_warm_ms", result.load_warm_ms},
      {"peak_rss_bytes", result.stats.peak_rss_bytes},
      {"device_bytes", result.stats.device_bytes},
      {"bytes_per_token", result.stats.bytes_per_token},
      {"weight_gbps", or_null(weight_gbps(result, test))},
      {"bytes_read", result.stats.bytes_read},
      {"cache_hit_ratio", result.stats.cache_hit_ratio},
      {"storage_filesystem", result.storage.filesystem},
      {"storage_device", result.storage.device},
      {"storage_drive", result.storage.drive},
      {"storage_read_ahead_kb", result.storage.read_ahead_kb ? Json(*result.storage.read_ahead_kb) : Json()},
  };
}

std::string csv_cell(const Json& value) {
  std::string text;
  if (value.is_null()) return text;
  if (value.is_array()) {  // samples
    for (const Json& element : value) text += (text.empty() ? "" : ";") + element.dump();
    return text;
  }
  if (!value.is_string()) return value.dump();
  for (const char c : value.get<std::string>()) text += c == '"' ? "\"\"" : std::string(1, c);
  return "\"" + text + "\"";
}

std::string csv_line(const Json& row, bool keys) {
  std::string line;
  for (const auto& [key, value] : row.items()) line += (line.empty() ? "" : ",") + (keys ? key : csv_cell(value));
  return line + "\n";
}

constexpr const char* kTableHead =
    "| model | type | size | threads | budget | test | tok/s | GB/s | first token | load cold | load warm | peak |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|\n";

std::string table_row(const BenchResult& result, const BenchTest& test) {
  const std::vector<double> rates = test.tokens_per_second();
  const std::optional<double> gbps = weight_gbps(result, test);
  std::string cells;
  const auto add = [&](const std::string& cell) { cells += " " + cell + " |"; };
  add(base_name(result.path));
  add(result.model.weight_type);
  add(format_bytes(result.model.file_bytes));
  add(std::to_string(result.runtime.threads));
  add(format_bytes(result.runtime.memory_budget_bytes));
  add(test.name());
  add(formatted("%.2f ± %.2f", mean(rates), standard_deviation(rates)));
  add(gbps ? formatted("%.2f", *gbps) : "");
  add(test.n_prompt > 0 ? formatted("%.1f ms", test.ttft_ms) : "");
  add(result.load_cold_ms ? formatted("%.0f ms", *result.load_cold_ms) : "unknown");
  add(formatted("%.0f ms", result.load_warm_ms));
  add(format_bytes(result.stats.peak_rss_bytes));
  return "|" + cells + "\n";
}

std::string facts(const BenchResult& result) {
  const StorageFacts& storage = result.storage;
  std::string text =
      formatted("\n%s: %s, %s. ", result.runtime.backend, result.runtime.device_name, result.runtime.simd);
  text += "File on " + (storage.filesystem.empty() ? "an unknown file system" : storage.filesystem) + " of " +
          (storage.device.empty() ? "an unknown device" : storage.device);
  if (!storage.drive.empty()) text += " (" + storage.drive + ")";
  if (storage.read_ahead_kb) text += ", read-ahead " + std::to_string(*storage.read_ahead_kb) + " KiB";
  return text + formatted(". leanstream %s (%s).\n", leanstream_version(), kCommit);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string BenchReport::row(const BenchResult& result, const BenchTest& test) {
  const bool first = !std::exchange(begun_, true);
  if (format_ == "md") return (first ? kTableHead : "") + table_row(result, test);
  const Json json = to_json(result, test);
  if (format_ == "csv") return (first ? csv_line(json, true) : "") + csv_line(json, false);
  if (format_ == "jsonl") return dump(json) + "\n";
  return (first ? "[\n" : ",\n") + dump(json);
}

std::string BenchReport::rows(const BenchResult& result) {
  std::string text;
  for (const BenchTest& test : result.tests) text += row(result, test);
  facts_ = facts(result);
  return text;
}

std::string BenchReport::end() {
  if (format_ == "md") return begun_ ? facts_ : "";
  if (format_ == "json") return begun_ ? "\n]\n" : "[]\n";
  return "";
}

}  // namespace leanstream::cli
