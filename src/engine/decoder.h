#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/hidden_observer.h"
#include "engine/row_items.h"
#include "engine/scratch.h"
#include "engine/weight_stream.h"
#include "engine/worker_team.h"
#include "kernels/cpu/kernels.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/rope.h"
#include "model/weights.h"

namespace leanstream::engine {

// Positions of a prompt that are computed together.
inline constexpr uint32_t kPromptChunk = 512;
inline constexpr uint32_t kMaxLogits = 32;

struct DecoderParams {
  uint32_t context = 0;  // positions
  kernels::KvType kv_type = kernels::KvType::kF16;
  uint32_t max_batch = kPromptChunk;  // most positions of one forward(), 1 .. kPromptChunk
  uint32_t max_logits = 1;            // most rows of one project(), 1 .. kMaxLogits
};

// Runs token positions of one sequence through a model on the CPU. Owns the KV cache and all scratch, sized at
// creation: no allocation afterwards. Borrows the model, the kernels, the team, and the stream of the weights that are
// not resident (nullptr where all are). Externally synchronised.
//
// A forward pass is one run of the team, and one pass over the stream: every worker walks through all layers, and
// within a step takes chunks of rows, heads or positions as it becomes free. Every number is computed by one worker in
// one order, so a position's result is bit for bit independent of how positions are grouped into calls and of the
// thread count.
class Decoder {
 public:
  // Errors: kInvalidArgument (params out of range, a cache type that the head size does not allow), kIo.
  static Result<std::unique_ptr<Decoder>> create(const model::Config& config, const model::Weights& weights,
                                                 WeightStream* stream, const kernels::Kernels& kernels,
                                                 WorkerTeam& team, const DecoderParams& params);
  // What create() will map, in bytes.
  static uint64_t kv_bytes(const model::Config& config, const DecoderParams& params);
  static uint64_t scratch_bytes(const model::Config& config, const DecoderParams& params, uint32_t threads);

  uint32_t position() const { return cache_.length(); }
  uint32_t context() const { return cache_.context(); }

  // Appends tokens.size() positions, 1 .. max_batch: runs all layers, keeps the final hidden states. Errors: kCancelled
  // when `stop` said so, or the stream's failure (nothing appended). The caller checked ids and room.
  Status forward(std::span<const int32_t> tokens, bool (*stop)(void*), void* stop_user);

  // Logits of positions [first, first + count) of the last forward(), count <= max_logits, into logits(). Errors:
  // kCancelled.
  Status project(uint32_t first, uint32_t count, bool (*stop)(void*), void* stop_user);

  const float* logits(uint32_t row) const;  // [n_vocab], of the last project()

  void truncate(uint32_t position) { cache_.truncate(position); }

  // Shows every forward() from now on to `observer`, which the caller keeps alive; nullptr: to nobody.
  void observe_hidden(HiddenObserver* observer) { observer_ = observer; }

 private:
  // A matrix of several that read the same input, and where its product goes: [count, stride].
  struct Product {
    const model::WeightMatrix& weights;
    float* out;
    size_t stride;
  };

  Decoder(const model::Config& config, const model::Weights& weights, WeightStream* stream,
          const kernels::Kernels& kernels, WorkerTeam& team, kernels::KvType kv_type, model::KvCache cache,
          Scratch scratch);

  // The steps of a layer, in order; each ends in a barrier.
  void run_layer(Worker& worker, uint32_t layer);
  void rotate_and_store(Worker& worker, uint32_t layer);
  void attend(Worker& worker, uint32_t layer);
  void gate_and_up(Worker& worker, const model::LayerWeights& weights);
  void multiply(Worker& worker, std::span<const Product> products, const kernels::Activations& x);

  // The rows of an item, as a matrix: in memory until let_go(). Without data where the run is to stop.
  // `which` of the worker's workspaces they may be rearranged in.
  Matrix take_rows(Worker& worker, const model::WeightMatrix& weights, const RowItems::Item& item, uint32_t which);
  void let_go(const model::WeightMatrix& weights, const RowItems::Item& item, const Matrix& rows);

  // Of position n of the batch.
  void embed(Worker& worker, uint32_t n);
  void add_to_residual(uint32_t n, float* product, const float* norm);
  void norm_to_input(uint32_t n, uint32_t row, const float* norm);

  // Vector n of `x` ([batch, cols]) in the form that quantised matrices read.
  void quantize(uint32_t n, const float* x, uint32_t cols);
  kernels::Activations activations(const float* x, uint32_t cols, uint32_t count) const;

  // How many of `total` items, each of about `work` multiply-adds, a worker takes at a time.
  uint32_t grain(const Worker& worker, uint32_t total, uint64_t work) const;
  template <typename Body>
  void for_each_position(Worker& worker, uint32_t count, Body&& body);

  const model::Config& config_;
  const model::Weights& weights_;
  WeightStream* const stream_;
  const kernels::Kernels& kernels_;
  WorkerTeam& team_;
  const kernels::KvType kv_type_;
  const uint32_t q_width_, kv_width_;  // n_heads * head_dim, n_kv_heads * head_dim
  model::KvCache cache_;
  Scratch scratch_;
  std::vector<model::RopeTable> ropes_;  // one per Config::ropes
  std::span<const int32_t> tokens_;      // of the forward() under way
  uint32_t count_ = 0;                   // positions of the last forward()
  HiddenObserver* observer_ = nullptr;
};

}  // namespace leanstream::engine
