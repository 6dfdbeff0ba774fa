#include "base/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace leanstream {

Result<uint64_t> parse_size(std::string_view text, uint64_t whole_bytes) {
  const auto bad = [&](const char* why) {
    return invalid_argument("cannot read '" + std::string(text) + "' as a size: " + why);
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return bad("it does not begin with a number");
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));

  double factor = 1;
  if (unit == "%") {
    if (whole_bytes == 0) return bad("there is nothing it could be a share of");
    factor = static_cast<double>(whole_bytes) / 100.0;
  } else if (!unit.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const size_t power = kUnits.find(static_cast<char>(unit[0] & ~0x20));
    const std::string_view rest = unit.substr(1);
    if (power == std::string_view::npos || !(rest.empty() || rest == "iB" || rest == "B" || rest == "b"))
      return bad("the units are K, M, G, T (powers of 1024) and %");
    factor = std::ldexp(1.0, 10 * static_cast<int>(power + 1));
  }
  const double bytes = number * factor;
  if (bytes >= 0x1p63) return bad("it is too large");
  return static_cast<uint64_t>(bytes);
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s",
                value, kUnits[unit]);
  return text;
}

}  // namespace leanstream
