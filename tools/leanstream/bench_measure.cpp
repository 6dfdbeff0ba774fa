#include "bench_measure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "interrupt.h"
#include "progress.h"
#include "text.h"

namespace leanstream::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Lets VmHWM begin anew, proc(5), so that each configuration has its own peak. Where that is refused, the peak is the
// process's so far.
void reset_peak_rss() {
  const int descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  const ssize_t ignored = write(descriptor, "5", 1);
  static_cast<void>(ignored);
  close(descriptor);
}

// Every part of a split set.
Result<std::vector<std::string>> model_files(const leanstream_model& model) {
  const Result<std::string> description =
      filled<std::string>([&](char* buffer, size_t capacity, size_t* needed, leanstream_error* error) {
        return leanstream_model_describe(&model, 1, buffer, capacity, needed, error);
      });
  if (!description.ok()) return description.status();
  std::vector<std::string> files;
  const nlohmann::json json = nlohmann::json::parse(*description, nullptr, false);
  for (const auto& file : json.at("files")) files.push_back(file.at("path"));
  return files;
}

// The same tokens on every machine.
std::vector<leanstream_token> random_tokens(uint32_t count, uint32_t n_vocab) {
  std::mt19937 random(1);
  std::vector<leanstream_token> tokens(count);
  for (leanstream_token& token : tokens) token = static_cast<leanstream_token>(random() % n_vocab);
  return tokens;
}

class Tests {
 public:
  Tests(leanstream_session& session, uint32_t n_vocab, const BenchSettings& settings)
      : session_(session), n_vocab_(n_vocab), settings_(settings) {}

  Result<BenchTest> prompt(uint32_t length) {
    const std::vector<leanstream_token> tokens = random_tokens(length, n_vocab_);
    BenchTest test;
    test.n_prompt = length;
    double ttft_sum_ms = 0;
    const auto once = [&]() -> Result<double> {
      const auto start = Clock::now();
      Status status = checked(
          [&](leanstream_error* e) { return leanstream_session_prefill(&session_, tokens.data(), tokens.size(), e); });
      if (!status.ok()) return status;
      const double elapsed_ms = milliseconds_since(start);
      leanstream_token first = 0;
      status = checked([&](leanstream_error* e) { return leanstream_session_sample(&session_, 0, &first, e); });
      if (!status.ok()) return status;
      first_token_ms_ = milliseconds_since(start);
      return elapsed_ms;
    };
    const Status status = repeat(once, test, [&] { ttft_sum_ms += first_token_ms_; });
    if (!status.ok()) return status;
    test.ttft_ms = ttft_sum_ms / settings_.repetitions;
    return test;
  }

  Result<BenchTest> generation(uint32_t length) {
    const std::vector<leanstream_token> tokens = random_tokens(length, n_vocab_);
    BenchTest test;
    test.n_generated = length;
    const auto once = [&]() -> Result<double> {
      const auto start = Clock::now();
      for (const leanstream_token& token : tokens) {
        const Status status =
            checked([&](leanstream_error* e) { return leanstream_session_decode(&session_, &token, 1, e); });
        if (!status.ok()) return status;
      }
      return milliseconds_since(start);
    };
    const Status status = repeat(once, test, [] {});
    if (!status.ok()) return status;
    return test;
  }

 private:
  // Each time from an empty context.
  Status repeat(const std::function<Result<double>()>& once, BenchTest& test, const std::function<void()>& counted) {
    ProgressBar bar(test.name());
    const uint32_t first = settings_.warm_up ? 0 : 1;
    for (uint32_t i = first; i <= settings_.repetitions; ++i) {
      bar.show(static_cast<double>(i) / (settings_.repetitions + 1));
      const Status emptied = checked([&](leanstream_error* e) { return leanstream_session_truncate(&session_, 0, e); });
      if (!emptied.ok()) return emptied;
      const Result<double> elapsed_ms = once();
      if (!elapsed_ms.ok()) return elapsed_ms.status();
      if (i == 0) continue;  // the warm-up
      test.samples_ms.push_back(*elapsed_ms);
      counted();
    }
    return {};
  }

  leanstream_session& session_;
  const uint32_t n_vocab_;
  const BenchSettings& settings_;
  double first_token_ms_ = 0;
};

Result<Model> timed_load(leanstream_runtime& runtime, const std::string& path, const leanstream_session_params& session,
                         double& elapsed_ms) {
  const auto start = Clock::now();
  Result<Model> model = open_model(runtime, path, LEANSTREAM_LOAD_FULL, &session);
  elapsed_ms = milliseconds_since(start);
  return model;
}

uint32_t longest(const BenchSettings& settings) {
  uint32_t most = 1;
  for (const auto* lengths : {&settings.prompt_lengths, &settings.generation_lengths})
    for (const uint32_t length : *lengths) most = std::max(most, length);
  return most;
}

}  // namespace

std::string BenchTest::name() const {
  return n_prompt > 0 ? formatted("pp%u", n_prompt) : formatted("tg%u", n_generated);
}

std::vector<double> BenchTest::tokens_per_second() const {
  std::vector<double> rates;
  for (const double ms : samples_ms) rates.push_back((n_prompt + n_generated) * 1000.0 / ms);
  return rates;
}

double mean(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double standard_deviation(const std::vector<double>& samples) {
  if (samples.size() < 2) return 0;
  const double average = mean(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - average) * (sample - average);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

Result<BenchResult> measure(const ModelOptions& options, const ContextOptions& context, const BenchSettings& settings) {
  reset_peak_rss();
  const Result<Runtime> runtime = create_runtime(options);
  if (!runtime.ok()) return runtime.status();
  leanstream_session_params params = session_params(context);
  if (params.context == 0) params.context = longest(settings);

  BenchResult result = {};
  result.path = options.model;
  std::vector<std::string> files;
  {
    const Result<Model> head = open_model(**runtime, options.model, LEANSTREAM_LOAD_METADATA);
    if (!head.ok()) return head.status();
    auto plan = with_size<leanstream_plan>();
    const Status status =
        checked([&](leanstream_error* e) { return leanstream_model_plan(head->get(), &params, &plan, e); });
    if (!status.ok()) return status;
    if (!plan.fits) return does_not_fit(plan);
    Result<std::vector<std::string>> parts = model_files(**head);
    if (!parts.ok()) return parts.status();
    files = std::move(*parts);
  }
  result.storage = storage_facts(files.front());
  const bool cold = std::all_of(files.begin(), files.end(), drop_from_page_cache);
  double first_load_ms = 0;
  if (Result<Model> first = timed_load(**runtime, options.model, params, first_load_ms); !first.ok())
    return first.status();
  if (cold) result.load_cold_ms = first_load_ms;
  const Result<Model> model = timed_load(**runtime, options.model, params, result.load_warm_ms);
  if (!model.ok()) return model.status();
  const Result<leanstream_model_info> info = model_info(**model);
  if (!info.ok()) return info.status();
  result.model = *info;

  leanstream_session* raw = nullptr;
  const Status created =
      checked([&](leanstream_error* e) { return leanstream_session_create(model->get(), &params, &raw, e); });
  if (!created.ok()) return created;
  const Session session(raw);
  if (const Status trace = start_trace(*session, settings.trace); !trace.ok()) return trace;
  Tests tests(*session, info->n_vocab, settings);
  const auto add = [&](Result<BenchTest> test) -> Status {
    if (test.ok()) result.tests.push_back(std::move(*test));
    return test.status();
  };
  for (const uint32_t length : settings.prompt_lengths)
    if (const Status status = length == 0 ? Status() : add(tests.prompt(length)); !status.ok()) return status;
  for (const uint32_t length : settings.generation_lengths)
    if (const Status status = length == 0 ? Status() : add(tests.generation(length)); !status.ok()) return status;

  if (const Status trace = finish_trace(*session, settings.trace); !trace.ok()) return trace;
  const Result<leanstream_stats> stats = session_stats(*session);
  if (!stats.ok()) return stats.status();
  result.stats = *stats;
  const Result<leanstream_runtime_info> machine = runtime_info(**runtime);
  if (!machine.ok()) return machine.status();
  result.runtime = *machine;
  return result;
}

}  // namespace leanstream::cli
