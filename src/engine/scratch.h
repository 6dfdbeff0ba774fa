#pragma once

#include <cstdint>

#include "base/memory.h"
#include "base/status.h"
#include "model/config.h"

namespace leanstream::engine {

// What one forward pass writes between its steps, for up to `batch` positions. Owns one mapping; buffers whose lives do
// not overlap share memory. Written by the workers, each its own positions or rows.
struct Scratch {
  struct Shape {
    uint32_t batch = 0;   // positions
    uint32_t logits = 0;  // rows of logits
    uint32_t threads = 0;
  };
  // Rows of gate and up that are computed together before their activation.
  static constexpr uint32_t kGluRows = 128;

  static Result<Scratch> create(const model::Config& config, const Shape& shape);
  static uint64_t bytes_for(const model::Config& config, const Shape& shape);

  MappedMemory memory;

  float* residual = nullptr;  // [batch, d_model] the residual stream
  float* input = nullptr;     // [batch, max(d_model, n_heads * head_dim)] what the next matrices read: normed residual,
                              // attention's output; then the down projection's output [batch, d_model]
  float* q = nullptr;         // [batch, n_heads * head_dim]; then the attention output projection [batch, d_model]
  float* k = nullptr;         // [batch, n_kv_heads * head_dim]
  float* v = nullptr;         // [batch, n_kv_heads * head_dim]
  float* hidden = nullptr;    // [batch, d_ff] act(gate) * up: the memory of q, k and v
  float* up = nullptr;        // [threads, batch, kGluRows] one tile of up per worker
  int8_t* q8 = nullptr;       // [batch, widest matrix input] the quantised form of `input` or `hidden`,
  float* scale = nullptr;     // [batch, widest / 32]
  int32_t* sum16 = nullptr;   // [batch, widest / 16]
  float* cos = nullptr;       // [ropes, batch, n_rot / 2]
  float* sin = nullptr;       // [ropes, batch, n_rot / 2]
  float* logits = nullptr;    // [logits, n_vocab]

 private:
  template <typename Take>
  void lay_out(const model::Config& config, const Shape& shape, Take&& take);
};

}  // namespace leanstream::engine
