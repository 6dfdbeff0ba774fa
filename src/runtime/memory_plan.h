#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/decoder.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "scheduler/stream_plan.h"

namespace leanstream::runtime {

// Context sizes that we choose ourselves: at most kDefaultContext, a multiple of kContextStep (attention's block of
// cache rows), never less than one step unless the model has less. A model is rather held as a whole with a context of
// kLeastWorthwhileContext than streamed with a larger one; where it is streamed, the KV cache takes at most one
// kStreamedKvShare-th of the budget.
inline constexpr uint32_t kDefaultContext = 4096;
inline constexpr uint32_t kContextStep = 32;
inline constexpr uint32_t kLeastWorthwhileContext = 512;
inline constexpr uint32_t kStreamedKvShare = 8;

// What a caller wants of a session, as far as memory goes.
struct SessionShape {
  uint32_t context = 0;  // positions; 0 = as many as the model, kDefaultContext and the budget allow: see above
  kernels::KvType kv_type = kernels::KvType::kF16;
  uint32_t max_logits = 1;
};

// What holding one model takes beside its weights, whatever its sessions, in bytes.
struct ModelNeeds {
  uint64_t head_bytes = 0;       // parsed metadata, tensor index, vocabulary
  uint64_t staging_bytes = 0;    // only while weights are loaded
  uint64_t bytes_per_token = 0;  // weight bytes that decoding one token uses
  uint32_t threads = 1;          // that compute
};

// What one session takes, in bytes.
struct SessionNeeds {
  uint64_t kv_bytes = 0;
  uint64_t buffers_bytes = 0;  // activations, logits, sampler, token history
};

// What running a model takes beside what is held already, and whether it fits.
struct MemoryPlan {
  scheduler::StreamPlan stream;  // which weights are resident, and how the others come
  uint64_t weights_bytes = 0;    // resident
  uint64_t ring_bytes = 0;       // for streamed weights on their way, and what reads them
  uint64_t kv_bytes = 0;
  uint64_t buffers_bytes = 0;
  uint64_t fixed_bytes = 0;  // the process, and what other models and sessions hold
  uint64_t budget_bytes = 0;
  uint32_t context = 0;
  uint64_t bytes_per_token = 0;
  uint64_t least_bytes = 0;  // total_bytes() with as little resident as can be

  uint64_t total_bytes() const { return weights_bytes + ring_bytes + kv_bytes + buffers_bytes + fixed_bytes; }
  bool fits() const { return total_bytes() <= budget_bytes; }
  // The smallest budget for this context, a whole number of MiB, with room for what differs between two starts of the
  // same program.
  uint64_t least_budget_bytes() const;
  // kOutOfBudget with all the numbers: "cannot <what>: ...".
  Status refusal(const std::string& what) const;
};

ModelNeeds model_needs(const gguf::Model& file, const model::Config& config, uint32_t threads);
SessionNeeds session_needs(const model::Config& config, const SessionShape& shape, uint32_t threads);

// An upper estimate of the heap that a parsed head and, when asked for, its tokenizer take.
uint64_t head_bytes(const gguf::Model& file);

// The engine's parameters for a session of this shape; shape.context is not 0.
engine::DecoderParams decoder_params(const SessionShape& shape);

struct PlanRequest {
  const gguf::Model& file;
  const model::Config& config;
  SessionShape shape;
  uint32_t threads = 1;
  uint64_t budget_bytes = 0;
  uint64_t held_bytes = 0;                        // by the budget's holders other than this model
  uint32_t request_bytes = uint32_t{1} << 20;     // what a read of the drive should be about
  const scheduler::StreamPlan* loaded = nullptr;  // of a model that is open already: its weights stay as they are
};

// Pure: reads nothing but the head of the file. For shape.context 0, where nothing fits, the context is the least there
// is, so that least_budget_bytes() is the least of all. Errors: those of scheduler::plan_stream.
Result<MemoryPlan> plan_memory(const PlanRequest& request);

}  // namespace leanstream::runtime
