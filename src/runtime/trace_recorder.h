#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/hidden_observer.h"
#include "runtime/memory_budget.h"
#include "runtime/open_model.h"
#include "trace/trace_writer.h"

namespace leanstream::runtime {

// Records which neurons each position of a session demands, as if all were decoded one by one: all of them, or the most
// important of each layer. Holds memory of the model's budget; all of it is taken at creation. Borrows the model.
class TraceRecorder final : public engine::HiddenObserver {
 public:
  // top: the share of each layer's neurons, below 1; 0: all neurons. max_positions: of one forward pass. Errors:
  // kInvalidArgument (top), kOutOfBudget, kUnsupported (no neurons to tell apart), kIo.
  static Result<std::unique_ptr<TraceRecorder>> create(const OpenModel& model, const std::string& path, double top,
                                                       uint32_t max_positions);

  // What the decoder is to show its forward passes to; nullptr where nothing needs to be seen.
  engine::HiddenObserver* observer() { return top_count_ == 0 ? nullptr : this; }
  void observe(engine::Worker& worker, uint32_t layer, const float* hidden, uint32_t count) override;

  // Writes the `count` positions of the last forward pass.
  Status add_positions(uint32_t count);
  // The file is complete under its name.
  Status finish();

 private:
  TraceRecorder(const OpenModel& model, uint32_t top_count, uint32_t max_positions, std::vector<float> norms,
                trace::TraceWriter writer, MemoryHold hold);

  std::span<uint64_t> bitmap(uint32_t layer, uint32_t position) {
    return {bitmaps_.data() + (size_t{layer} * max_positions_ + position) * words_, words_};
  }

  const uint32_t n_layers_, d_ff_;
  const uint32_t top_count_;  // neurons of each layer; 0: all
  const uint32_t max_positions_;
  const size_t words_;              // of a layer's bitmap
  const std::vector<float> norms_;  // [n_layers, d_ff]
  std::vector<uint64_t> bitmaps_;   // [n_layers, max_positions, words]
  std::vector<uint64_t> keys_;      // [threads, d_ff]
  trace::TraceWriter writer_;
  MemoryHold hold_;
};

}  // namespace leanstream::runtime
