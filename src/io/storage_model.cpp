#include "io/storage_model.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "io/interpolate.h"

namespace leanstream::io {
namespace {

constexpr double kMinBytesPerS = 1e3, kMaxBytesPerS = 1e12;
constexpr uint32_t kMaxSizeBytes = uint32_t{1} << 30;
constexpr uint32_t kMaxLatencyUs = 10'000'000;

bool take_prefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

std::optional<double> take_number(std::string_view* text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

// "3.5GB/s@256K"
std::optional<StorageModel::Point> parse_point(std::string_view text) {
  std::optional<double> rate = take_number(&text);
  if (!rate) return std::nullopt;
  if (take_prefix(&text, "GB/s")) {
    *rate *= 1e9;
  } else if (take_prefix(&text, "MB/s")) {
    *rate *= 1e6;
  } else {
    return std::nullopt;
  }
  if (!take_prefix(&text, "@")) return std::nullopt;
  std::optional<double> size = take_number(&text);
  if (!size) return std::nullopt;
  if (take_prefix(&text, "K")) {
    *size *= 1024;
  } else if (take_prefix(&text, "M")) {
    *size *= 1024 * 1024;
  }
  if (!text.empty() || *size < 1 || *size > kMaxSizeBytes) return std::nullopt;
  if (*rate < kMinBytesPerS || *rate > kMaxBytesPerS) return std::nullopt;
  return StorageModel::Point{static_cast<uint32_t>(*size), *rate};
}

// "lat=90us"
std::optional<uint32_t> parse_latency(std::string_view text) {
  if (!take_prefix(&text, "lat=")) return std::nullopt;
  std::optional<double> latency = take_number(&text);
  if (!latency) return std::nullopt;
  if (take_prefix(&text, "ms")) {
    *latency *= 1000;
  } else if (!take_prefix(&text, "us")) {
    return std::nullopt;
  }
  if (!text.empty() || *latency > kMaxLatencyUs) return std::nullopt;
  return static_cast<uint32_t>(*latency);
}

Status bad_part(std::string_view part, const char* why) {
  return invalid_argument("cannot imitate a drive: \"" + std::string(part) + "\": " + why);
}

}  // namespace

Result<StorageModel> StorageModel::parse(std::string_view text) {
  StorageModel model;
  const size_t comma = text.find(',');
  if (comma != std::string_view::npos) {
    const std::string_view part = text.substr(comma + 1);
    const std::optional<uint32_t> latency = parse_latency(part);
    if (!latency) return bad_part(part, "expected a latency such as lat=90us");
    model.latency_us = *latency;
    text = text.substr(0, comma);
  }
  for (;;) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const std::optional<Point> point = parse_point(part);
    if (!point) return bad_part(part, "expected a bandwidth at a request size, such as 2.0GB/s@64K");
    if (!model.points.empty() && point->size_bytes <= model.points.back().size_bytes)
      return bad_part(part, "request sizes must rise");
    model.points.push_back(*point);
    if (colon == std::string_view::npos) return model;
    text.remove_prefix(colon + 1);
  }
}

double StorageModel::bandwidth(uint32_t size_bytes) const {
  return interpolate_bandwidth(points, size_bytes);
}

Throttle::Throttle(StorageModel model) : model_(std::move(model)) {}

uint64_t Throttle::completion_us(uint64_t now_us, uint32_t size_bytes) {
  const auto transfer_ns = static_cast<uint64_t>(double(size_bytes) * 1e9 / model_.bandwidth(size_bytes));
  const uint64_t now_ns = now_us * 1000;
  // Nothing but the number is shared: no order is needed.
  uint64_t busy = busy_until_ns_.load(std::memory_order_relaxed), until;
  do {
    until = (busy > now_ns ? busy : now_ns) + transfer_ns;
  } while (!busy_until_ns_.compare_exchange_weak(busy, until, std::memory_order_relaxed));
  return until / 1000 + model_.latency_us;
}

}  // namespace leanstream::io
