#include "io/storage_curve.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/interpolate.h"

namespace leanstream::io {

double StorageCurve::bandwidth(uint32_t size_bytes, uint32_t depth) const {
  if (points.empty()) return 0;
  const auto distance = [&](const Point& point) {
    return std::abs(std::log(double(point.depth) / std::max(depth, 1U)));
  };
  const auto nearest = std::min_element(points.begin(), points.end(),
                                        [&](const Point& a, const Point& b) { return distance(a) < distance(b); });
  std::vector<Point> row;
  for (const Point& point : points)
    if (point.depth == nearest->depth) row.push_back(point);
  return interpolate_bandwidth(row, size_bytes);
}

StorageCurve::Point StorageCurve::knee(double share) const {
  const auto slower = [](const Point& a, const Point& b) { return a.bytes_per_s < b.bytes_per_s; };
  const double enough = share * std::max_element(points.begin(), points.end(), slower)->bytes_per_s;
  Point knee{UINT32_MAX, UINT32_MAX, 0};
  for (const Point& point : points) {
    const bool smaller =
        point.size_bytes != knee.size_bytes ? point.size_bytes < knee.size_bytes : point.depth < knee.depth;
    if (point.bytes_per_s >= enough && smaller) knee = point;
  }
  return knee;
}

std::string StorageCurve::to_json() const {
  nlohmann::json json;
  json["device"] = device;
  json["measured_unix_s"] = measured_unix_s;
  for (const Point& point : points)
    json["points"].push_back(
        {{"size_bytes", point.size_bytes}, {"depth", point.depth}, {"bytes_per_s", std::round(point.bytes_per_s)}});
  // A file system may have any bytes in its name.
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<StorageCurve> StorageCurve::from_json(const std::string& text) {
  const auto bad = [](const char* why) { return malformed(std::string("cannot use a kept storage curve: ") + why); };
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("not a JSON object");
  const auto device = json.find("device"), measured = json.find("measured_unix_s"), points = json.find("points");
  if (device == json.end() || !device->is_string()) return bad("no device");
  if (measured == json.end() || !measured->is_number_integer()) return bad("no time of measurement");
  if (points == json.end() || !points->is_array() || points->empty()) return bad("no points");
  StorageCurve curve;
  curve.device = device->get<std::string>();
  curve.measured_unix_s = measured->get<int64_t>();
  const auto whole = [](const nlohmann::json& object, const char* key) -> uint32_t {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_number_unsigned()) return 0;
    const auto value = at->get<uint64_t>();
    return value > UINT32_MAX ? 0 : static_cast<uint32_t>(value);
  };
  for (const nlohmann::json& object : *points) {
    if (!object.is_object()) return bad("a point is no object");
    const auto rate = object.find("bytes_per_s");
    const Point point{whole(object, "size_bytes"), whole(object, "depth"),
                      rate != object.end() && rate->is_number() ? rate->get<double>() : 0};
    if (point.size_bytes == 0 || point.depth == 0 || !(point.bytes_per_s > 0)) return bad("a point makes no sense");
    curve.points.push_back(point);
  }
  std::sort(curve.points.begin(), curve.points.end(), [](const Point& a, const Point& b) {
    return a.depth != b.depth ? a.depth < b.depth : a.size_bytes < b.size_bytes;
  });
  return curve;
}

}  // namespace leanstream::io
