#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leanstream {

// Why an operation failed. The numbers are those of `leanstream_status` in leanstream.h.
enum class Code : int {
  kOk = 0,
  kInvalidArgument = 1,   // the caller's request makes no sense
  kNotFound = 2,          // a file, tensor or key is not there
  kIo = 3,                // the operating system refused or failed a read, write or mapping
  kMalformed = 4,         // the file breaks the rules of its format
  kUnsupported = 5,       // valid, but not something this library does
  kOutOfBudget = 6,       // does not fit the memory budget
  kContextFull = 7,       // the KV cache has no position left
  kCancelled = 8,         // the caller asked to stop
  kNumeric = 9,           // NaN or infinity where a number was expected
  kBufferTooSmall = 10,   // the caller's buffer; the needed size was reported
  kDeadline = 11,         // a wait ran past its deadline
  kInternal = 12,         // our own bug
};

// The outcome of an operation that can fail: OK, or a code and one sentence
// "what failed: which thing: why" for the user. A value type, cheap when OK.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure seen from further out: "context: message".
  Status with_context(std::string_view context) const {
    return ok() ? *this : Status(code_, std::string(context) + ": " + message_);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A value, or the Status that says why there is none.
// Usage:  Result<File> file = File::open(path);
//         if (!file.ok()) return file.status();
//         use(*file);
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }  // OK exactly when there is a value

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

Status invalid_argument(std::string message);
Status not_found(std::string message);
Status malformed(std::string message);
Status unsupported(std::string message);
Status out_of_budget(std::string message);
Status cancelled(std::string message);
Status internal_error(std::string message);
// "message: strerror(error_number)", code kIo (kNotFound for ENOENT).
Status io_error(std::string message, int error_number);

}  // namespace leanstream
