#include "report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.h"
#include "base/units.h"
#include "handles.h"
#include "log.h"
#include "text.h"

namespace leanstream::cli {
namespace {

double per_second(uint64_t count, double milliseconds) {
  return milliseconds > 0 ? static_cast<double>(count) * 1000.0 / milliseconds : 0;
}

const char* bound_name(leanstream_bound bound) {
  switch (bound) {
    case LEANSTREAM_BOUND_STORAGE:
      return "storage";
    case LEANSTREAM_BOUND_MEMORY:
      return "memory";
    case LEANSTREAM_BOUND_COMPUTE:
      return "compute";
  }
  return "unknown";
}

const char* reason_name(leanstream_stop_reason reason) {
  switch (reason) {
    case LEANSTREAM_STOP_EOS:
      return "eos";
    case LEANSTREAM_STOP_LENGTH:
      return "length";
    case LEANSTREAM_STOP_STRING:
      return "stop";
    case LEANSTREAM_STOP_CANCELLED:
      return "cancelled";
  }
  return "unknown";
}

// Storage bandwidth: of decoding where it streams, else of loading.
double read_gbps(const leanstream_stats& stats) {
  const bool streams = stats.bytes_read_decode > 0;
  return streams ? per_second(stats.bytes_read_decode, stats.decode_ms) / 1e9
                 : per_second(stats.bytes_read, stats.load_ms) / 1e9;
}

// A device or a pipe is written to as it is, never replaced.
bool is_special(const std::string& path) {
  struct stat existing = {};
  if (stat(path.c_str(), &existing) == 0) return !S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode);
  return false;
}
bool names_a_descriptor(const std::string& path) {
  return path.rfind("/dev/", 0) == 0 || path.rfind("/proc/", 0) == 0;
}

Status write_to_existing(const std::string& path, const std::string& contents) {
  // O_NONBLOCK for the opening only: a FIFO that nobody reads is an error, not an endless wait.
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return io_error("cannot open " + path, errno);
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count = write(descriptor, contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error_number = errno;
      close(descriptor);
      return io_error("cannot write " + path, error_number);
    }
    done += static_cast<size_t>(count);
  }
  close(descriptor);
  return {};
}

}  // namespace

Result<RunFigures> collect_figures(const leanstream_runtime& runtime, const leanstream_session& session,
                                   leanstream_stop_reason reason) {
  const Result<leanstream_stats> stats = session_stats(session);
  if (!stats.ok()) return stats.status();
  const Result<leanstream_runtime_info> info = runtime_info(runtime);
  if (!info.ok()) return info.status();
  return RunFigures{*stats, *info, reason};
}

void log_timings(const RunFigures& figures) {
  const leanstream_stats& stats = figures.stats;
  const auto count = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  log_info(formatted("load         %9.1f ms", stats.load_ms));
  log_info(formatted("prompt eval  %9.1f ms, %llu tokens, %.2f tok/s, first token after %.1f ms", stats.prefill_ms,
                     count(stats.prompt_tokens), per_second(stats.prompt_tokens, stats.prefill_ms), stats.ttft_ms));
  log_info(formatted("eval         %9.1f ms, %llu tokens, %.2f tok/s, %s of weights each, stopped by: %s",
                     stats.decode_ms, count(stats.generated_tokens), per_second(stats.decoded_tokens, stats.decode_ms),
                     format_bytes(stats.bytes_per_token).c_str(), reason_name(figures.reason)));
  log_info(formatted("storage      %s read in all, %s of them while decoding (%.2f GB/s %s)",
                     format_bytes(stats.bytes_read).c_str(), format_bytes(stats.bytes_read_decode).c_str(),
                     read_gbps(stats), stats.bytes_read_decode > 0 ? "then" : "while loading"));
  if (stats.io_engine[0] != '\0')
    log_info(formatted("streaming    %.0f %% of the weights are resident, compute waited %.1f ms in all; %s",
                       100 * stats.cache_hit_ratio, stats.io_wait_ms, stats.io_engine));
  log_info(formatted("memory       peak %s of a budget of %s",
                     format_bytes(stats.peak_rss_bytes + stats.device_bytes).c_str(),
                     format_bytes(stats.memory_budget_bytes).c_str()));
  log_info(formatted("device       %s: %s, %s, %u threads; bound by %s", figures.runtime.backend,
                     figures.runtime.device_name, figures.runtime.simd, figures.runtime.threads,
                     bound_name(stats.bound_by)));
}

std::string stats_json(const RunFigures& figures) {
  const leanstream_stats& stats = figures.stats;
  nlohmann::ordered_json json = {
      {"prompt_tokens", stats.prompt_tokens},
      {"generated_tokens", stats.generated_tokens},
      {"load_ms", stats.load_ms},
      {"ttft_ms", stats.ttft_ms},
      {"prefill_tps", per_second(stats.prompt_tokens, stats.prefill_ms)},
      {"decode_tps", per_second(stats.decoded_tokens, stats.decode_ms)},
      {"peak_rss_bytes", stats.peak_rss_bytes},
      {"device_bytes", stats.device_bytes},
      {"memory_budget_bytes", stats.memory_budget_bytes},
      {"bytes_read", stats.bytes_read},
      {"bytes_read_decode", stats.bytes_read_decode},
      {"read_gbps", read_gbps(stats)},
      {"cache_hit_ratio", stats.cache_hit_ratio},
      {"io_wait_ms", stats.io_wait_ms},
      {"backend", figures.runtime.backend},
      {"device_name", figures.runtime.device_name},
      {"simd", figures.runtime.simd},
      {"bound_by", bound_name(stats.bound_by)},
      {"stop_reason", reason_name(figures.reason)},
  };
  if (stats.io_engine[0] != '\0')
    json["streaming"] = {{"engine", stats.io_engine},
                         {"direct", stats.io_direct != 0},
                         {"registered_buffers", stats.io_registered_buffers != 0},
                         {"registered_files", stats.io_registered_files != 0},
                         {"huge_pages", stats.io_huge_pages != 0}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Status check_output_file(const std::string& path, const std::string& model) {
  if (path.empty()) return {};
  if (same_file(path, model)) return invalid_argument("cannot write " + path + ": it is the model that is read");
  if (is_special(path) || names_a_descriptor(path))
    return access(path.c_str(), W_OK) == 0 ? Status() : io_error("cannot write " + path, errno);
  return AtomicFileWriter::create(path).status();
}

Status write_file(const std::string& path, const std::string& contents) {
  if (is_special(path) || names_a_descriptor(path)) return write_to_existing(path, contents);
  Result<AtomicFileWriter> file = AtomicFileWriter::create(path);
  if (!file.ok()) return file.status();
  Status status = file->write(std::as_bytes(std::span(contents)));
  if (!status.ok()) return status;
  return file->commit();
}

}  // namespace leanstream::cli
