#pragma once

#include <string>

#include "bench_measure.h"

namespace leanstream::cli {

// The rows of a benchmark as text, one per test, in one of four formats. Each function's result is to be printed at
// once: a long benchmark shows what it has.
class BenchReport {
 public:
  // "md", "csv", "json" or "jsonl".
  explicit BenchReport(std::string format) : format_(std::move(format)) {}

  std::string rows(const BenchResult& result);
  std::string end();

 private:
  std::string row(const BenchResult& result, const BenchTest& test);

  const std::string format_;
  bool begun_ = false;
  std::string facts_;  // md: what the lines below the table say
};

}  // namespace leanstream::cli
