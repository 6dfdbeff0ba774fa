#include "text.h"

#include <cstdarg>
#include <cstdio>
#include <optional>

namespace leanstream::cli {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return std::nullopt;
}

}  // namespace

std::string formatted(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "nrt'\"\\";
  constexpr std::string_view kBytes = "\n\r\t'\"\\";
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i + 1);
    if (text[i] != '\\' || rest.empty()) {
      result += text[i];
      continue;
    }
    if (const size_t letter = kLetters.find(rest[0]); letter != std::string_view::npos) {
      result += kBytes[letter];
      i += 1;
      continue;
    }
    if (rest[0] == 'x' && rest.size() >= 3) {
      const std::optional<int> high = hex_digit(rest[1]);
      const std::optional<int> low = hex_digit(rest[2]);
      if (high && low) {
        result += static_cast<char>(*high * 16 + *low);
        i += 3;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

}  // namespace leanstream::cli
