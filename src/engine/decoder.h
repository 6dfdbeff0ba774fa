#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "engine/worker_team.h"
#include "kernels/cpu/kernels.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/weights.h"

namespace leanstream::engine {

// Positions of a prompt that are computed together. Fixed: results may depend on it by rounding, so it depends on
// nothing else.
inline constexpr uint32_t kPromptChunk = 512;
inline constexpr uint32_t kMaxLogits = 32;

struct DecoderParams {
  uint32_t context = 0;                 // positions
  kernels::KvType kv_type = kernels::KvType::kF16;
  uint32_t max_batch = kPromptChunk;    // most positions of one forward(), 1 .. kPromptChunk
  uint32_t max_logits = 1;              // most rows of one project(), 1 .. kMaxLogits
};

// Runs token positions of one sequence through a model on the CPU. Owns the KV cache and all scratch, sized at
// creation: no allocation afterwards. Externally synchronised.
class Decoder {
 public:
  static Result<std::unique_ptr<Decoder>> create(const model::Config& config, const model::Weights& weights,
                                                 const kernels::Kernels& kernels, WorkerTeam& team,
                                                 const DecoderParams& params);
  // What create() will map, in bytes.
  static uint64_t kv_bytes(const model::Config& config, const DecoderParams& params);
  static uint64_t scratch_bytes(const model::Config& config, const DecoderParams& params);

  ~Decoder();

  uint32_t position() const;
  uint32_t context() const;

  // Appends tokens.size() positions, 1 .. max_batch: runs all layers, keeps the final hidden states. Every position's
  // result is bit for bit independent of how positions are grouped into calls and of the thread count. Errors: kCancelled when
  // `stop` said so (nothing appended). The caller checked ids and room.
  Status forward(std::span<const int32_t> tokens, bool (*stop)(void*), void* stop_user);

  // Logits of positions [first, first + count) of the last forward(), count <= max_logits, into logits().
  Status project(uint32_t first, uint32_t count, bool (*stop)(void*), void* stop_user);

  const float* logits(uint32_t row) const;  // [n_vocab], of the last project()

  void truncate(uint32_t position);
};

}  // namespace leanstream::engine
