#include "log.h"

#include <fcntl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "exit_code.h"
#include "interrupt.h"

namespace leanstream::cli {
namespace {

// Lines to a descriptor, unbuffered.
class DescriptorSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}

  int error_number() const { return error_number_; }  // of the first write that failed; 0 if none did

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_all({line.data(), line.size()});
  }
  void flush_() override {}

  void write_all(std::string_view bytes) {
    while (!bytes.empty() && error_number_ == 0) {
      const ssize_t count = write(descriptor_, bytes.data(), bytes.size());
      if (count >= 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
      } else if (errno != EINTR) {
        error_number_ = errno;
      }
    }
  }

 private:
  const int descriptor_;
  int error_number_ = 0;
};

// Whether what is written to standard output shows up between the lines on standard error.
bool both_streams_show_together() {
  struct stat out = {}, err = {};
  if (fstat(STDOUT_FILENO, &out) != 0 || fstat(STDERR_FILENO, &err) != 0) return false;
  if (out.st_dev == err.st_dev && out.st_ino == err.st_ino) return true;
  return S_ISFIFO(out.st_mode) && isatty(STDERR_FILENO);  // `| cat`, most likely onto the same terminal
}

// Standard error. It may be closed or full: that is no reason to fail, and there is nowhere to say it.
class StandardErrorSink final : public DescriptorSink {
 public:
  StandardErrorSink() : DescriptorSink(STDERR_FILENO) {}

  void set_text_inside_line(bool inside) { text_inside_line_ = inside; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (text_inside_line_ && both_streams_show_together()) write_all("\n");
    text_inside_line_ = false;
    DescriptorSink::sink_it_(message);
  }

 private:
  bool text_inside_line_ = false;
};

// Every line of the command line goes through here. The file's descriptor stays open until the process ends.
struct Log {
  std::shared_ptr<StandardErrorSink> standard_error = std::make_shared<StandardErrorSink>();
  spdlog::logger logger{"leanstream", standard_error};
  std::shared_ptr<DescriptorSink> file;  // nullptr without --log-file
  std::string file_path;

  Log() {
    standard_error->set_pattern("leanstream: %v");
    logger.set_level(spdlog::level::info);
    logger.set_error_handler([](const std::string&) {});
  }
};

Log& log() {
  static Log instance;
  return instance;
}
spdlog::logger& logger() {
  return log().logger;
}

}  // namespace

void add_log_options(Flags& flags, LogOptions& options) {
  flags.group("Log");
  flags.flag("-v,--verbose", options.verbose, "Say more on standard error");
  flags.number("--verbosity", "N", options.verbosity, 0, 9, "0 errors only, 3 information, 4 debugging (also -lv)");
  flags.flag("--log-disable", options.disabled, "Only errors on standard error");
  flags.text("--log-file", "FILE", options.file, "Append the log, with times, to FILE");
}

Status start_log(const LogOptions& options, const std::vector<std::string>& inputs) {
  const bool debug = options.verbose || options.verbosity > 3;
  const bool quiet = options.disabled || options.verbosity < 3;
  const auto level = debug ? spdlog::level::debug : spdlog::level::info;
  logger().set_level(level);
  log().standard_error->set_level(quiet ? spdlog::level::err : level);
  if (options.file.empty()) return {};
  for (const std::string& input : inputs)
    if (same_file(options.file, input))
      return invalid_argument("cannot open the log file " + options.file + ": it is the file that is read, " + input);
  // O_NONBLOCK for the opening only: a FIFO that nobody reads is an error, not an endless wait.
  const int descriptor = open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  if (descriptor >= 0) fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  if (descriptor < 0) return io_error("cannot open the log file " + options.file, errno);
  log().file = std::make_shared<DescriptorSink>(descriptor);
  log().file_path = options.file;
  log().file->set_pattern("%Y-%m-%d %H:%M:%S.%e %v");
  logger().sinks().push_back(log().file);
  return {};
}

int finish_log(int exit_code) {
  const int error_number = log().file ? log().file->error_number() : 0;
  if (error_number == 0) return exit_code;
  logger().error("error: {}", io_error("cannot write the log file " + log().file_path, error_number).message());
  return exit_code == kExitOk ? kExitFailed : exit_code;
}

void set_text_inside_line(bool inside) {
  log().standard_error->set_text_inside_line(inside);
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
