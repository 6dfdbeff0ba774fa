#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "handles.h"
#include "model_options.h"
#include "storage_facts.h"
#include "trace_options.h"

namespace leanstream::cli {

struct BenchSettings {
  std::vector<uint32_t> prompt_lengths;
  std::vector<uint32_t> generation_lengths;
  uint32_t repetitions = 5;
  bool warm_up = true;
  TraceOptions trace;
};

// Times of one test: processing a prompt of `n_prompt` random tokens, or decoding `n_generated` one by one.
struct BenchTest {
  uint32_t n_prompt = 0;
  uint32_t n_generated = 0;
  std::vector<double> samples_ms;
  double ttft_ms = 0;  // mean; of prompts only

  std::string name() const;  // "pp512", "tg128"
  std::vector<double> tokens_per_second() const;
};

// One model under one budget and thread count.
struct BenchResult {
  std::string path;
  leanstream_model_info model;
  leanstream_runtime_info runtime;
  leanstream_stats stats;  // when the tests were over: the peak is theirs and loading's
  StorageFacts storage;
  std::optional<double> load_cold_ms;  // nothing where the page cache could not be emptied of the file
  double load_warm_ms = 0;
  std::vector<BenchTest> tests;
};

// Loads twice, first from the drive, then from the page cache; then runs the tests. Errors: those of loading and
// computing; kCancelled on an interrupt.
Result<BenchResult> measure(const ModelOptions& options, const ContextOptions& context, const BenchSettings& settings);

double mean(const std::vector<double>& samples);
double standard_deviation(const std::vector<double>& samples);  // of a sample: n - 1

}  // namespace leanstream::cli
