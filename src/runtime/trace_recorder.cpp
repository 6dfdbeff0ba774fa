#include "runtime/trace_recorder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/checked.h"
#include "base/units.h"
#include "runtime/neurons.h"

namespace leanstream::runtime {
namespace {

std::string selection_name(double top) {
  if (top == 0) return "all";
  char text[64];
  std::snprintf(text, sizeof text, "top %g by importance", top);
  return text;
}

}  // namespace

Result<std::unique_ptr<TraceRecorder>> TraceRecorder::create(const OpenModel& model, const std::string& path,
                                                             double top, uint32_t max_positions) {
  if (!(top >= 0 && top < 1))
    return invalid_argument("the share of neurons to record is " + std::to_string(top) + ", it goes from 0 (all) to 1");
  const model::Config& config = *model.config();
  const uint32_t top_count =
      top == 0 ? 0 : std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(top * config.d_ff)));
  const Result<std::vector<uint32_t>> bytes = neuron_bytes(model.file(), config);
  if (!bytes.ok()) return bytes.status();
  trace::Header header;
  header.model = config.name.substr(0, trace::kMaxTextBytes);
  header.pieces = "neuron";
  header.selection = selection_name(top);
  for (const uint32_t one : *bytes) header.layers.push_back({{config.d_ff, one}});

  Runtime& runtime = model.runtime();
  uint64_t needed = trace::TraceWriter::bytes_for(header);
  if (top_count != 0)
    needed +=
        uint64_t{config.n_layers} * (config.d_ff * sizeof(float) + max_positions * ceil_div(config.d_ff, 64) * 8) +
        uint64_t{runtime.team().size()} * config.d_ff * sizeof(uint64_t);
  std::optional<MemoryHold> hold = runtime.memory().take(needed);
  if (!hold)
    return out_of_budget("recording takes " + format_bytes(needed) + ", and of the budget of " +
                         format_bytes(runtime.memory().budget_bytes()) + " " +
                         format_bytes(runtime.memory().held_bytes()) + " are held already");
  std::vector<float> norms;
  if (top_count != 0) {
    Result<std::vector<float>> result = down_norms(model.file(), config, runtime.kernels(), runtime.team());
    if (!result.ok()) return result.status();
    norms = *std::move(result);
  }
  Result<trace::TraceWriter> writer = trace::TraceWriter::create(path, header);
  if (!writer.ok()) return writer.status();
  return std::unique_ptr<TraceRecorder>(
      new TraceRecorder(model, top_count, max_positions, std::move(norms), *std::move(writer), *std::move(hold)));
}

TraceRecorder::TraceRecorder(const OpenModel& model, uint32_t top_count, uint32_t max_positions,
                             std::vector<float> norms, trace::TraceWriter writer, MemoryHold hold)
    : n_layers_(model.config()->n_layers),
      d_ff_(model.config()->d_ff),
      top_count_(top_count),
      max_positions_(max_positions),
      words_(ceil_div(d_ff_, 64)),
      norms_(std::move(norms)),
      writer_(std::move(writer)),
      hold_(std::move(hold)) {
  if (top_count == 0) return;
  bitmaps_.resize(size_t{n_layers_} * max_positions * words_);
  keys_.resize(size_t{model.runtime().team().size()} * d_ff_);
}

void TraceRecorder::observe(engine::Worker& worker, uint32_t layer, const float* hidden, uint32_t count) {
  const std::span<uint64_t> keys(keys_.data() + size_t{worker.index()} * d_ff_, d_ff_);
  const std::span<const float> norms(norms_.data() + size_t{layer} * d_ff_, d_ff_);
  worker.for_each_chunk(count, 1, [&](uint32_t position, uint32_t) {
    mark_most_important({hidden + size_t{position} * d_ff_, d_ff_}, norms, top_count_, keys, bitmap(layer, position));
  });
}

Status TraceRecorder::add_positions(uint32_t count) {
  for (uint32_t position = 0; position < count; ++position) {
    for (uint32_t layer = 0; layer < n_layers_; ++layer) {
      if (top_count_ == 0)
        writer_.add_whole_layer();
      else
        writer_.add_layer(bitmap(layer, position));
    }
    if (Status status = writer_.end_token(); !status.ok()) return status.with_context("cannot record the trace");
  }
  return {};
}

Status TraceRecorder::finish() {
  return writer_.commit().with_context("cannot record the trace");
}

}  // namespace leanstream::runtime
