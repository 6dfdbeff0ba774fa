#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/decoder.h"
#include "gguf/reader.h"
#include "model/config.h"

namespace leanstream::runtime {

// Context sizes that we choose ourselves: at most kDefaultContext, a multiple of kContextStep (attention's block of
// cache rows), never less than one step unless the model has less.
inline constexpr uint32_t kDefaultContext = 4096;
inline constexpr uint32_t kContextStep = 32;

// What a caller wants of a session, as far as memory goes.
struct SessionShape {
  uint32_t context = 0;  // positions; 0 = as many as the model, kDefaultContext and the budget allow
  kernels::KvType kv_type = kernels::KvType::kF16;
  uint32_t max_logits = 1;
};

// What holding one model takes, whatever its sessions, in bytes.
struct ModelNeeds {
  uint64_t weights_bytes = 0;
  uint64_t head_bytes = 0;       // parsed metadata, tensor index, vocabulary
  uint64_t staging_bytes = 0;    // only while weights are loaded
  uint64_t bytes_per_token = 0;  // weight bytes that decoding one token reads
  uint32_t threads = 1;          // that compute
};

// What one session takes, in bytes.
struct SessionNeeds {
  uint64_t kv_bytes = 0;
  uint64_t buffers_bytes = 0;  // activations, logits, sampler, token history
};

// What running a model takes beside what is held already, and whether it fits.
struct MemoryPlan {
  uint64_t weights_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t buffers_bytes = 0;
  uint64_t fixed_bytes = 0;  // the process, and what other models and sessions hold
  uint64_t budget_bytes = 0;
  uint32_t context = 0;
  uint64_t bytes_per_token = 0;

  uint64_t total_bytes() const { return weights_bytes + kv_bytes + buffers_bytes + fixed_bytes; }
  bool fits() const { return total_bytes() <= budget_bytes; }
  // A whole number of MiB, with room for what differs between two starts of the same program.
  uint64_t least_budget_bytes() const;
  // kOutOfBudget with all the numbers: "cannot <what>: ...".
  Status refusal(const std::string& what) const;
};

// Errors: those of engine::resident_weight_bytes.
Result<ModelNeeds> model_needs(const gguf::Model& file, const model::Config& config, uint32_t threads);
SessionNeeds session_needs(const model::Config& config, const SessionShape& shape, uint32_t threads);

// An upper estimate of the heap that a parsed head and, when asked for, its tokenizer take.
uint64_t head_bytes(const gguf::Model& file);

// The engine's parameters for a session of this shape; shape.context is not 0.
engine::DecoderParams decoder_params(const SessionShape& shape);

// Pure: held_bytes is what the budget's holders other than this model have. For shape.context 0 the context is the most
// that fits; where nothing fits, the least there is, so that least_budget_bytes() is the least of all.
MemoryPlan plan_memory(const model::Config& config, const ModelNeeds& needs, const SessionShape& shape,
                       uint64_t budget_bytes, uint64_t held_bytes);

}  // namespace leanstream::runtime
