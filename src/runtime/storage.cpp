#include "runtime/storage.h"

#include <algorithm>
#include <cmath>

namespace leanstream::runtime {
namespace {

// Smaller requests cost compute a wait each, larger ones delay the first byte and take more ring for the same depth.
constexpr uint32_t kLeastRequest = uint32_t{256} << 10, kMostRequest = uint32_t{1} << 20;
constexpr uint32_t kMostInFlight = uint32_t{16} << 20;  // beyond it drives lose (docs/io.md)
constexpr uint32_t kLeastDepth = 4;
constexpr double kShareOfBest = 0.97;

}  // namespace

RequestShape request_shape(const io::StorageCurve& curve) {
  RequestShape shape;
  if (curve.points.empty()) return shape;
  const io::StorageCurve::Point knee = curve.knee(kShareOfBest);
  shape.size_bytes = std::clamp(knee.size_bytes, kLeastRequest, kMostRequest);
  shape.depth = std::clamp(knee.depth, kLeastDepth, kMostInFlight / shape.size_bytes);
  shape.bytes_per_s = curve.bandwidth(shape.size_bytes, shape.depth);
  return shape;
}

RequestShape request_shape(const io::StorageModel& model) {
  RequestShape shape;
  shape.size_bytes = kMostRequest;
  while (shape.size_bytes > kLeastRequest &&
         model.bandwidth(shape.size_bytes / 2) > kShareOfBest * model.bandwidth(kMostRequest))
    shape.size_bytes /= 2;
  // While one read waits out the latency, the others keep the drive busy.
  const double transfer_s = shape.size_bytes / model.bandwidth(shape.size_bytes);
  const double alone_s = model.latency_us * 1e-6 + transfer_s;
  shape.depth = static_cast<uint32_t>(
      std::clamp(std::ceil(alone_s / transfer_s), double{kLeastDepth}, double{kMostInFlight} / shape.size_bytes));
  shape.bytes_per_s = std::min(model.bandwidth(shape.size_bytes), shape.depth * shape.size_bytes / alone_s);
  return shape;
}

io::PoolParams pool_params(const StorageSettings& settings, const RequestShape& shape, const Log& log) {
  io::PoolParams params;
  params.kind = settings.kind;
  params.depth = shape.depth;
  params.model = settings.model;
  params.log.user = const_cast<Log*>(&log);
  params.log.write = [](std::string_view line, void* user) { static_cast<const Log*>(user)->warn(line); };
  return params;
}

}  // namespace leanstream::runtime
