#pragma once

#include <cstdint>

#include "engine/worker_team.h"

namespace leanstream::engine {

// Looks at what goes into each layer's down projection: for recording, and for judging predictions.
class HiddenObserver {
 public:
  virtual ~HiddenObserver() = default;

  // Called by every worker of a forward pass, between two steps of the layer, so that all may share the work with
  // worker.for_each_chunk. hidden: [count, d_ff], act(gate) * up of each position; valid during the call.
  virtual void observe(Worker& worker, uint32_t layer, const float* hidden, uint32_t count) = 0;
};

}  // namespace leanstream::engine
