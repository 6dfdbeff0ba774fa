#include "api/boundary.h"

#include <algorithm>

namespace leanstream::api {

void copy_text(std::string_view text, char* out, size_t capacity) noexcept {
  size_t length = std::min(text.size(), capacity - 1);
  const auto is_continuation = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  if (length < text.size())
    while (length > 0 && is_continuation(length)) --length;
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

leanstream_status report(Code code, std::string_view message, leanstream_error* error) noexcept {
  const auto status = static_cast<leanstream_status>(code);
  if (error != nullptr) {
    error->status = status;
    copy_text(message, error->message, sizeof error->message);
  }
  return status;
}

Status require(std::initializer_list<RequiredArgument> arguments) {
  for (const RequiredArgument& argument : arguments)
    if (argument.pointer == nullptr) return invalid_argument("argument '" + std::string(argument.name) + "' is NULL");
  return {};
}

Status check_struct_size(size_t struct_size, size_t known_size, const char* struct_name) {
  if (struct_size == known_size) return {};
  return invalid_argument(std::string(struct_name) + ": struct_size is " + std::to_string(struct_size) +
                          ", this library (" + leanstream_version() + ") knows " + std::to_string(known_size));
}

}  // namespace leanstream::api
