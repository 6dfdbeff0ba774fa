#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/residency.h"
#include "gguf/reader.h"
#include "model/config.h"

namespace leanstream::scheduler {

// Where a piece is: its rows, back to back.
struct Piece {
  uint32_t file = 0;  // of gguf::Model::files()
  uint64_t offset = 0;
  uint32_t size_bytes = 0;
};

// What a model's parts take, in bytes, and how much of each is resident.
struct Part {
  uint64_t bytes = 0, resident_bytes = 0;
};

// Which weights are resident, and how the others come: see docs/streaming.md. A value type.
struct StreamPlan {
  engine::Residency residency;
  std::vector<Piece> pieces;  // in the order of a pass
  uint64_t slot_bytes = 0;    // of each slot of the ring, a multiple of kSlotAlignment
  uint32_t slots = 0;

  Part embedding, attention, mlp, output, norms;  // as in the file; a tied embedding counts as the output
  uint64_t resident_bytes = 0;                    // as engine::load_weights lays them out
  uint64_t streamed_bytes = 0;                    // of each pass

  bool streams() const { return !pieces.empty() || residency.embedding_by_demand; }
  uint64_t ring_bytes() const { return slot_bytes * slots; }
  uint64_t workspace_bytes = 0;  // engine::WeightStream::workspace, of all workers
  uint64_t total_bytes() const;  // resident, ring and workspaces, as whole huge pages
};

struct StreamPlanParams {
  uint64_t budget_bytes = 0;                 // for resident weights and the ring
  uint32_t piece_bytes = uint32_t{1} << 20;  // what a read should be about
  uint64_t most_ring_bytes = uint64_t{48} << 20;
  uint32_t threads = 1;  // that compute
};

inline constexpr uint32_t kSlotAlignment = 4096;

// Pure: reads nothing but the index. The plan may be larger than the budget: then it is the smallest there is. A pack is
// held whole.
// Errors: those of engine::resident_weight_bytes.
Result<StreamPlan> plan_stream(const gguf::Model& file, const model::Config& config, const StreamPlanParams& params);

}  // namespace leanstream::scheduler
