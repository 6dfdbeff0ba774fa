#include "base/status.h"

#include <cerrno>
#include <system_error>

namespace leanstream {

Status invalid_argument(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
Status not_found(std::string message) { return {Code::kNotFound, std::move(message)}; }
Status malformed(std::string message) { return {Code::kMalformed, std::move(message)}; }
Status unsupported(std::string message) { return {Code::kUnsupported, std::move(message)}; }
Status out_of_budget(std::string message) { return {Code::kOutOfBudget, std::move(message)}; }
Status cancelled(std::string message) { return {Code::kCancelled, std::move(message)}; }
Status internal_error(std::string message) { return {Code::kInternal, std::move(message)}; }

Status io_error(std::string message, int error_number) {
  const Code code = error_number == ENOENT ? Code::kNotFound : Code::kIo;
  return {code, std::move(message) + ": " + std::generic_category().message(error_number)};
}

}  // namespace leanstream
