#include "engine/decoder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <initializer_list>
#include <string>

#include "base/checked.h"

namespace leanstream::engine {
namespace {

using kernels::Activations;

// Multiply-adds that a worker takes at a time, at most: about 5 ms of a core, so that a stop is prompt. Not less, since
// a matrix kernel interleaves the batch's activations anew for each chunk: a third of prefill at one panel a chunk.
constexpr uint64_t kChunkWork = 512 << 20;
// Chunks per worker that a step is cut into, at least, where it has the items: what the last one to finish is late by.
// A single position reads panels once and gains from finer balance; a prompt pays for each chunk (see above).
constexpr uint32_t kDecodeChunksPerWorker = 32;
constexpr uint32_t kPromptChunksPerWorker = 16;
// Query heads, over positions, of one attention task (what pays off: see kernels::AttentionTask).
constexpr uint32_t kAttentionQueries = 16;
// From this many vectors on a piece is interleaved once, as resident weights are, instead of by the matrix kernel for
// each of its batches of vectors.
constexpr uint32_t kInterleaveFrom = 65;
// About what norms and quantising cost per element, in multiply-adds of a matrix kernel.
constexpr uint64_t kElementWork = 32;

kernels::GluActivation glu_activation(model::Activation activation) {
  switch (activation) {
    case model::Activation::kGeluTanh:
      return kernels::GluActivation::kGeluTanh;
    case model::Activation::kRelu:
      return kernels::GluActivation::kRelu;
    case model::Activation::kSilu:
      break;
  }
  return kernels::GluActivation::kSilu;
}

// Whether any of the matrices reads quantised activations.
bool any_quantized(std::initializer_list<const model::WeightMatrix*> matrices) {
  return std::any_of(matrices.begin(), matrices.end(),
                     [](const model::WeightMatrix* m) { return !is_float(m->resident.type); });
}

// Rows [begin, end) of a matrix, as a matrix; begin is a multiple of kPanelRows. In both layouts they begin at the same
// byte.
Matrix rows_of(const Matrix& w, uint32_t begin, uint32_t end) {
  Matrix part = w;
  part.rows = end - begin;
  part.data += begin * row_bytes(w.type, w.cols);
  return part;
}

Status check_params(const model::Config& config, const DecoderParams& params) {
  const auto in_range = [](uint32_t value, uint32_t most) { return value >= 1 && value <= most; };
  if (params.context == 0) return invalid_argument("cannot create a decoder: its context is 0 positions");
  if (!in_range(params.max_batch, kPromptChunk))
    return invalid_argument("cannot create a decoder: a batch of " + std::to_string(params.max_batch) +
                            " positions is not between 1 and " + std::to_string(kPromptChunk));
  if (!in_range(params.max_logits, kMaxLogits))
    return invalid_argument("cannot create a decoder: " + std::to_string(params.max_logits) +
                            " rows of logits are not between 1 and " + std::to_string(kMaxLogits));
  if (params.kv_type == kernels::KvType::kQ8_0 && config.head_dim % 32 != 0)
    return invalid_argument(
        "cannot create a decoder: a q8_0 KV cache needs a head size that is a multiple of 32, this model's is " +
        std::to_string(config.head_dim));
  return {};
}

}  // namespace

Result<std::unique_ptr<Decoder>> Decoder::create(const model::Config& config, const model::Weights& weights,
                                                 WeightStream* stream, const kernels::Kernels& kernels,
                                                 WorkerTeam& team, const DecoderParams& params) {
  if (Status status = check_params(config, params); !status.ok()) return status;
  Result<model::KvCache> cache = model::KvCache::create(config.n_layers, config.n_kv_heads, params.context,
                                                        kernels::kv_head_bytes(params.kv_type, config.head_dim));
  if (!cache.ok()) return cache.status();
  Result<Scratch> scratch = Scratch::create(config, {params.max_batch, params.max_logits, team.size()});
  if (!scratch.ok()) return scratch.status();
  return std::unique_ptr<Decoder>(
      new Decoder(config, weights, stream, kernels, team, params.kv_type, std::move(*cache), std::move(*scratch)));
}

uint64_t Decoder::kv_bytes(const model::Config& config, const DecoderParams& params) {
  return model::KvCache::bytes_for(config.n_layers, config.n_kv_heads, params.context,
                                   kernels::kv_head_bytes(params.kv_type, config.head_dim));
}

uint64_t Decoder::scratch_bytes(const model::Config& config, const DecoderParams& params, uint32_t threads) {
  return Scratch::bytes_for(config, {params.max_batch, params.max_logits, threads});
}

Decoder::Decoder(const model::Config& config, const model::Weights& weights, WeightStream* stream,
                 const kernels::Kernels& kernels, WorkerTeam& team, kernels::KvType kv_type, model::KvCache cache,
                 Scratch scratch)
    : config_(config),
      weights_(weights),
      stream_(stream),
      kernels_(kernels),
      team_(team),
      kv_type_(kv_type),
      q_width_(config.n_heads * config.head_dim),
      kv_width_(config.n_kv_heads * config.head_dim),
      cache_(std::move(cache)),
      scratch_(std::move(scratch)) {
  for (const model::Rope& rope : config.ropes) ropes_.emplace_back(rope, weights.rope_factors);
}

Status Decoder::forward(std::span<const int32_t> tokens, bool (*stop)(void*), void* stop_user) {
  assert(!tokens.empty() && tokens.size() <= context() - position());
  tokens_ = tokens;
  count_ = static_cast<uint32_t>(tokens.size());
  if (stream_ != nullptr)
    if (Status status = stream_->begin_pass(); !status.ok()) return status;
  const bool complete = team_.run(
      [this](Worker& worker) {
        for (uint32_t layer = 0; layer < config_.n_layers && !worker.stopping(); ++layer) run_layer(worker, layer);
        const float* norm = weights_.layers.back().post_ffn_norm;
        for_each_position(worker, count_, [&](uint32_t n) { add_to_residual(n, scratch_.input, norm); });
      },
      stop, stop_user);
  if (stream_ != nullptr)
    if (Status status = stream_->end_pass(complete); !status.ok()) return status;
  if (!complete) return cancelled("the forward pass was cancelled");
  cache_.append(count_);
  return {};
}

Status Decoder::project(uint32_t first, uint32_t count, bool (*stop)(void*), void* stop_user) {
  assert(first + count <= count_);
  const bool complete = team_.run(
      [&](Worker& worker) {
        for_each_position(worker, count, [&](uint32_t n) {
          norm_to_input(n, first + n, weights_.output_norm);
          if (any_quantized({&weights_.output})) quantize(n, scratch_.input, config_.d_model);
        });
        const Product product{weights_.output, scratch_.logits, config_.n_vocab};
        multiply(worker, {&product, 1}, activations(scratch_.input, config_.d_model, count));
      },
      stop, stop_user);
  return complete ? Status() : cancelled("the projection to logits was cancelled");
}

const float* Decoder::logits(uint32_t row) const {
  return scratch_.logits + uint64_t{row} * config_.n_vocab;
}

void Decoder::run_layer(Worker& worker, uint32_t layer) {
  const model::LayerWeights& w = weights_.layers[layer];
  const uint32_t d_model = config_.d_model;
  float* const attention_product = scratch_.q;  // both [count, d_model]; what else lives there is done with
  float* const ffn_product = scratch_.input;

  for_each_position(worker, count_, [&](uint32_t n) {
    if (layer == 0)
      embed(worker, n);
    else
      add_to_residual(n, ffn_product, weights_.layers[layer - 1].post_ffn_norm);
    norm_to_input(n, n, w.attn_norm);
    if (any_quantized({&w.q, &w.k, &w.v})) quantize(n, scratch_.input, d_model);
  });
  const std::array qkv{Product{w.q, scratch_.q, q_width_}, Product{w.k, scratch_.k, kv_width_},
                       Product{w.v, scratch_.v, kv_width_}};
  multiply(worker, qkv, activations(scratch_.input, d_model, count_));
  rotate_and_store(worker, layer);
  attend(worker, layer);

  if (any_quantized({&w.o}))
    for_each_position(worker, count_, [&](uint32_t n) { quantize(n, scratch_.input, q_width_); });
  const Product o{w.o, attention_product, d_model};
  multiply(worker, {&o, 1}, activations(scratch_.input, q_width_, count_));

  for_each_position(worker, count_, [&](uint32_t n) {
    add_to_residual(n, attention_product, w.post_attn_norm);
    norm_to_input(n, n, w.ffn_norm);
    if (any_quantized({&w.gate, &w.up})) quantize(n, scratch_.input, d_model);
  });
  gate_and_up(worker, w);
  if (observer_ != nullptr) observer_->observe(worker, layer, scratch_.hidden, count_);

  if (any_quantized({&w.down}))
    for_each_position(worker, count_, [&](uint32_t n) { quantize(n, scratch_.hidden, config_.d_ff); });
  const Product down{w.down, ffn_product, d_model};
  multiply(worker, {&down, 1}, activations(scratch_.hidden, config_.d_ff, count_));
}

void Decoder::rotate_and_store(Worker& worker, uint32_t layer) {
  const model::LayerWeights& w = weights_.layers[layer];
  const uint32_t dim = config_.head_dim;
  const uint32_t group = config_.n_heads / config_.n_kv_heads;
  const uint32_t rope_index = config_.layers[layer].rope;
  const model::Rope& rope = config_.ropes[rope_index];
  const kernels::RopeStyle style = rope.halves ? kernels::RopeStyle::kHalves : kernels::RopeStyle::kInterleaved;

  // One item: a KV head and its queries at one position.
  const uint32_t total = count_ * config_.n_kv_heads;
  const uint32_t step = grain(worker, total, uint64_t{dim} * (group + 2) * kElementWork);
  worker.for_each_chunk(total, step, [&](uint32_t begin, uint32_t end) {
    for (uint32_t item = begin; item < end; ++item) {
      const uint32_t n = item / config_.n_kv_heads, kv_head = item % config_.n_kv_heads;
      const size_t angles = (size_t{rope_index} * count_ + n) * (rope.n_rot / 2);
      const auto rotate = [&](float* x, const float* bias, const float* norm) {
        if (bias) kernels_.add(x, bias, dim);
        if (norm) kernels_.rms_norm(x, norm, dim, config_.rms_epsilon, x);
        kernels_.rope(style, scratch_.cos + angles, scratch_.sin + angles, rope.n_rot, x);
      };
      for (uint32_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
        rotate(scratch_.q + size_t{n} * q_width_ + head * dim, w.q_bias ? w.q_bias + head * dim : nullptr, w.q_norm);
      float* key = scratch_.k + size_t{n} * kv_width_ + kv_head * dim;
      rotate(key, w.k_bias ? w.k_bias + kv_head * dim : nullptr, w.k_norm);
      float* value = scratch_.v + size_t{n} * kv_width_ + kv_head * dim;
      if (w.v_bias) kernels_.add(value, w.v_bias + kv_head * dim, dim);

      const size_t row = size_t{position() + n} * cache_.row_bytes();
      kernels_.store_kv(kv_type_, key, dim, cache_.keys(layer, kv_head) + row);
      kernels_.store_kv(kv_type_, value, dim, cache_.values(layer, kv_head) + row);
    }
  });
}

void Decoder::attend(Worker& worker, uint32_t layer) {
  const uint32_t dim = config_.head_dim;
  const uint32_t group = config_.n_heads / config_.n_kv_heads;
  const uint32_t window = config_.layers[layer].window;

  // One item: a KV head at a few positions, whose queries share each cache row that is read. Head by head, so that the
  // workers share what they read too.
  const uint32_t positions = std::clamp<uint32_t>(kAttentionQueries / group, 1, count_);
  const uint32_t items_per_head = static_cast<uint32_t>(ceil_div(count_, positions));
  const uint32_t total = items_per_head * config_.n_kv_heads;
  const uint32_t step = grain(worker, total, uint64_t{position() + count_} * dim * group * positions * 2);
  worker.for_each_chunk(total, step, [&](uint32_t begin, uint32_t end) {
    for (uint32_t item = begin; item < end; ++item) {
      const uint32_t kv_head = item / items_per_head, n = item % items_per_head * positions;
      const size_t first_query = size_t{n} * q_width_ + kv_head * group * dim;
      kernels::AttentionTask task;
      task.kv_type = kv_type_;
      task.head_dim = dim;
      task.n_queries = group;
      task.n_positions = std::min(positions, count_ - n);
      task.position_stride = q_width_;
      task.q = scratch_.q + first_query;
      task.k = cache_.keys(layer, kv_head);
      task.v = cache_.values(layer, kv_head);
      task.kv_stride_bytes = cache_.row_bytes();
      task.end = position() + n + 1;
      task.window = window;
      task.scale = config_.attention_scale;
      task.out = scratch_.input + first_query;
      kernels_.attention(task);
    }
  });
}

void Decoder::gate_and_up(Worker& worker, const model::LayerWeights& w) {
  const Activations x = activations(scratch_.input, config_.d_model, count_);
  const kernels::GluActivation activation = glu_activation(config_.activation);
  const uint64_t work = 2 * uint64_t{kPanelRows} * config_.d_model * count_;
  const uint32_t step =
      std::min(grain(worker, panel_count(w.gate.resident.rows), work), Scratch::kGluRows / kPanelRows);
  float* const up = scratch_.up + size_t{worker.index()} * count_ * Scratch::kGluRows;  // [count, kGluRows]

  // Rows [begin, end) of both, which are rows from first_row on of the whole.
  const auto compute = [&](const Matrix& gate_rows, const Matrix& up_rows, uint32_t first_row) {
    float* const hidden = scratch_.hidden + first_row;  // [count, stride d_ff]
    kernels_.matmul(gate_rows, x, 0, gate_rows.rows, hidden, config_.d_ff);
    kernels_.matmul(up_rows, x, 0, up_rows.rows, up, Scratch::kGluRows);
    for (uint32_t n = 0; n < count_; ++n) {
      float* const row = hidden + size_t{n} * config_.d_ff;
      kernels_.glu(activation, row, up + size_t{n} * Scratch::kGluRows, up_rows.rows, row);
    }
  };
  const model::WeightMatrix* const gate = &w.gate;
  const RowItems items({&gate, 1}, step);  // of up as well: the two are split alike
  worker.for_each_chunk(items.count(), 1, [&](uint32_t index, uint32_t) {
    const RowItems::Item item = items[index];
    const Matrix gate_rows = take_rows(worker, w.gate, item, 0), up_rows = take_rows(worker, w.up, item, 1);
    if (!gate_rows || !up_rows) return worker.request_stop();
    for (uint32_t begin = 0; begin < gate_rows.rows; begin += Scratch::kGluRows) {
      const uint32_t end = std::min(begin + Scratch::kGluRows, gate_rows.rows);
      compute(rows_of(gate_rows, begin, end), rows_of(up_rows, begin, end), item.row_begin + begin);
    }
    let_go(w.gate, item, gate_rows);
    let_go(w.up, item, up_rows);
  });
}

void Decoder::multiply(Worker& worker, std::span<const Product> products, const Activations& x) {
  std::array<const model::WeightMatrix*, 3> matrices{};
  assert(products.size() <= matrices.size());
  uint32_t panels = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    matrices[i] = &products[i].weights;
    panels += panel_count(matrices[i]->resident.rows);
  }
  const RowItems items({matrices.data(), products.size()},
                       grain(worker, panels, uint64_t{kPanelRows} * x.cols * x.count));
  worker.for_each_chunk(items.count(), 1, [&](uint32_t index, uint32_t) {
    const RowItems::Item item = items[index];
    const Product& product = products[item.matrix];
    const Matrix rows = take_rows(worker, product.weights, item, 0);
    if (!rows) return worker.request_stop();
    kernels_.matmul(rows, x, 0, rows.rows, product.out + item.row_begin, product.stride);
    let_go(product.weights, item, rows);
  });
}

Matrix Decoder::take_rows(Worker& worker, const model::WeightMatrix& weights, const RowItems::Item& item,
                          uint32_t which) {
  if (!item.streamed) return rows_of(weights.resident, item.row_begin, item.row_end);
  const auto stop = [](void* self) { return static_cast<Worker*>(self)->stop_requested(); };
  const uint32_t piece = weights.streamed.piece(item.piece);
  Matrix rows = weights.resident;
  rows.layout = Layout::kFile;
  rows.rows = item.row_end - item.row_begin;
  rows.data = stream_->acquire(piece, stop, &worker);
  if (!rows || count_ < kInterleaveFrom) return rows;

  std::byte* const panels = stream_->workspace(worker.index(), which);
  const size_t stride = row_bytes(rows.type, rows.cols);
  for (uint32_t row = 0; row < rows.rows; row += kPanelRows)
    kernels_.pack_panel(rows.type, rows.cols, std::min(kPanelRows, rows.rows - row), rows.data + row * stride, stride,
                        panels + row * stride);
  stream_->release(piece);
  rows.layout = Layout::kPanel;
  rows.data = panels;
  return rows;
}

void Decoder::let_go(const model::WeightMatrix& weights, const RowItems::Item& item, const Matrix& rows) {
  if (item.streamed && rows.layout == Layout::kFile) stream_->release(weights.streamed.piece(item.piece));
}

void Decoder::embed(Worker& worker, uint32_t n) {
  for (size_t i = 0; i < ropes_.size(); ++i) {
    const size_t angles = (i * count_ + n) * ropes_[i].pairs();
    ropes_[i].fill(position() + n, scratch_.cos + angles, scratch_.sin + angles);
  }
  float* const residual = scratch_.residual + size_t{n} * config_.d_model;
  Matrix table = weights_.token_embedding.resident;
  if (table) {
    kernels_.dequantize_row(table, static_cast<uint32_t>(tokens_[n]), config_.embedding_scale, residual);
    return;
  }
  // No type takes more than f32 does: a row fits where its normed floats go next.
  std::byte* const row = reinterpret_cast<std::byte*>(scratch_.input + size_t{n} * config_.d_model);
  if (!stream_->read_embedding(tokens_[n], row)) return worker.request_stop();
  table.layout = Layout::kFile;
  table.rows = 1;
  table.data = row;
  kernels_.dequantize_row(table, 0, config_.embedding_scale, residual);
}

void Decoder::add_to_residual(uint32_t n, float* product, const float* norm) {
  float* const row = product + size_t{n} * config_.d_model;
  if (norm) kernels_.rms_norm(row, norm, config_.d_model, config_.rms_epsilon, row);
  kernels_.add(scratch_.residual + size_t{n} * config_.d_model, row, config_.d_model);
}

void Decoder::norm_to_input(uint32_t n, uint32_t row, const float* norm) {
  kernels_.rms_norm(scratch_.residual + size_t{row} * config_.d_model, norm, config_.d_model, config_.rms_epsilon,
                    scratch_.input + size_t{n} * config_.d_model);
}

void Decoder::quantize(uint32_t n, const float* x, uint32_t cols) {
  kernels_.quantize(x + size_t{n} * cols, cols, scratch_.q8 + size_t{n} * cols,
                    scratch_.scale + size_t{n} * (cols / 32), scratch_.sum16 + size_t{n} * (cols / 16));
}

Activations Decoder::activations(const float* x, uint32_t cols, uint32_t count) const {
  return {count, cols, x, scratch_.q8, scratch_.scale, scratch_.sum16};
}

uint32_t Decoder::grain(const Worker& worker, uint32_t total, uint64_t work) const {
  const uint32_t chunks = worker.count() * (count_ == 1 ? kDecodeChunksPerWorker : kPromptChunksPerWorker);
  const uint64_t for_balance = std::max<uint64_t>(1, total / chunks);
  return static_cast<uint32_t>(std::clamp<uint64_t>(kChunkWork / std::max<uint64_t>(1, work), 1, for_balance));
}

template <typename Body>
void Decoder::for_each_position(Worker& worker, uint32_t count, Body&& body) {
  const uint32_t step = grain(worker, count, config_.d_model * kElementWork);
  worker.for_each_chunk(count, step, [&](uint32_t begin, uint32_t end) {
    for (uint32_t n = begin; n < end; ++n) body(n);
  });
}

}  // namespace leanstream::engine
