#include "log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string_view>

#include "exit_code.h"
#include "interrupt.h"

namespace leanstream::cli {
namespace {

std::shared_ptr<spdlog::logger> make_logger() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  sink->set_pattern("leanstream: %v");
  auto logger = std::make_shared<spdlog::logger>("leanstream", std::move(sink));
  logger->set_level(spdlog::level::info);
  // Standard error may be closed or full: that is no reason to fail, and there is nowhere to say it.
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make_logger();
  return *instance;
}

}  // namespace

void add_log_options(Flags& flags, LogOptions& options) {
  flags.group("Log");
  flags.flag("-v,--verbose", options.verbose, "Say more on standard error");
  flags.number("--verbosity", "N", options.verbosity, 0, 9, "0 errors only, 3 information, 4 debugging (also -lv)");
  flags.flag("--log-disable", options.disabled, "Only errors on standard error");
  flags.text("--log-file", "FILE", options.file, "Append the log, with times, to FILE");
}

Status start_log(const LogOptions& options) {
  const bool debug = options.verbose || options.verbosity > 3;
  const bool quiet = options.disabled || options.verbosity < 3;
  const auto level = debug ? spdlog::level::debug : spdlog::level::info;
  logger().set_level(level);
  logger().sinks().front()->set_level(quiet ? spdlog::level::err : level);
  if (options.file.empty()) return {};
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(options.file);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %v");
    logger().sinks().push_back(std::move(sink));
    logger().flush_on(spdlog::level::debug);
  } catch (const spdlog::spdlog_ex&) {
    return io_error("cannot open the log file " + options.file, errno);
  }
  return {};
}

void log_debug(const std::string& line) {
  logger().debug(std::string_view(line));
}
void log_info(const std::string& line) {
  logger().info(std::string_view(line));
}
void log_note(const std::string& line) {
  logger().info("note: {}", line);
}

int report_failure(const Status& failure) {
  if (failure.code() == Code::kCancelled || interrupted() != 0) return kExitInterrupted;
  logger().error("error: {}", failure.message());
  return kExitFailed;
}

int report_usage(const std::string& sentence) {
  logger().error("error: {}", sentence);
  return kExitUsage;
}

// What the library says of itself is for -v: the command line says what its users need, in its own words.
void log_from_library(leanstream_log_level level, const char* text, size_t length, void* /*user*/) {
  const std::string_view line(text, length);
  switch (level) {
    case LEANSTREAM_LOG_DEBUG:
    case LEANSTREAM_LOG_INFO:
      logger().debug(line);
      break;
    case LEANSTREAM_LOG_WARN:
      logger().warn("warning: {}", line);
      break;
    case LEANSTREAM_LOG_ERROR:
      logger().error("error: {}", line);
      break;
  }
}

}  // namespace leanstream::cli
