#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "kernels/abi/matrix.h"

namespace leanstream::model {

// One transformer layer's weights as typed views. Empty (false / nullptr) where the architecture has none.
struct LayerWeights {
  const float* attn_norm = nullptr;       // [d_model]
  Matrix q, k, v, o;                      // [n_heads*head_dim, d_model], 2 x [n_kv_heads*head_dim, d_model], [d_model, n_heads*head_dim]
  const float* q_bias = nullptr;          // [q.rows], and so on
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* q_norm = nullptr;          // [head_dim], per head, before RoPE
  const float* k_norm = nullptr;
  const float* post_attn_norm = nullptr;  // [d_model], on attention's output (gemma3)
  const float* ffn_norm = nullptr;        // [d_model]
  Matrix gate, up, down;                  // 2 x [d_ff, d_model], [d_model, d_ff]
  const float* post_ffn_norm = nullptr;   // [d_model] (gemma3)
};

// All weights of a model, resident. Owns the memory that the views point into. Immutable once loaded, thread-safe.
struct Weights {
  Matrix token_embedding;                 // [n_vocab, d_model]
  std::vector<LayerWeights> layers;
  const float* output_norm = nullptr;     // [d_model]
  Matrix output;                          // [n_vocab, d_model]; the same memory as token_embedding when tied
  const float* rope_factors = nullptr;    // [n_rot / 2] from rope_freqs.weight, or nullptr
  MappedMemory memory;
  uint64_t bytes_per_token = 0;           // weight bytes that decoding one token reads
};

}  // namespace leanstream::model
