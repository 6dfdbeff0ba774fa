#pragma once

#include <chrono>

#include "runtime/statistics.h"
#include "scheduler/streamer.h"

namespace leanstream::runtime {

// Adds the time of one scope to a total.
class Stopwatch {
 public:
  explicit Stopwatch(double& total_ms) : total_ms_(total_ms) {}
  ~Stopwatch() { total_ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& total_ms_;
  const Clock::time_point start_ = Clock::now();
};

// Adds what one scope of decoding took: time, and where weights are streamed what they cost meanwhile.
class DecodeMeter {
 public:
  // `stream` may be nullptr.
  DecodeMeter(const scheduler::Streamer* stream, Statistics& statistics)
      : watch_(statistics.decode_ms), stream_(stream), statistics_(statistics) {
    if (stream_ != nullptr) before_ = stream_->counters();
  }
  ~DecodeMeter() {
    if (stream_ == nullptr) return;
    const scheduler::StreamCounters now = stream_->counters();
    statistics_.decode_bytes_read += now.bytes_read - before_.bytes_read;
    statistics_.decode_wait_ms += static_cast<double>(now.wait_us - before_.wait_us) / 1000;
  }
  DecodeMeter(const DecodeMeter&) = delete;
  DecodeMeter& operator=(const DecodeMeter&) = delete;

 private:
  const Stopwatch watch_;
  const scheduler::Streamer* const stream_;
  Statistics& statistics_;
  scheduler::StreamCounters before_;
};

}  // namespace leanstream::runtime
