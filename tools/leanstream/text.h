#pragma once

#include <string>
#include <string_view>

namespace leanstream::cli {

// snprintf into a string.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// \n \r \t \' \" \\ and \xHH as the bytes they stand for; any other backslash stays as it is.
std::string unescaped(std::string_view text);

}  // namespace leanstream::cli
