#pragma once

#include <string_view>

namespace leanstream::runtime {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3 };

// Where log lines go: one function of the caller's, or nowhere. A value type; lines are written on the thread that made
// the call they tell about.
class Log {
 public:
  using Sink = void (*)(LogLevel level, std::string_view line, void* user);

  Log() = default;  // silent
  Log(Sink sink, void* user) : sink_(sink), user_(user) {}

  void info(std::string_view line) const { write(LogLevel::kInfo, line); }
  void warn(std::string_view line) const { write(LogLevel::kWarn, line); }

 private:
  void write(LogLevel level, std::string_view line) const {
    if (sink_ != nullptr) sink_(level, line, user_);
  }

  Sink sink_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace leanstream::runtime
