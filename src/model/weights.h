#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kernels/abi/matrix.h"
#include "model/config.h"

namespace leanstream::model {

// One transformer layer's weights as typed views. Empty (false / nullptr) where the architecture has none.
struct LayerWeights {
  const float* attn_norm = nullptr;  // [d_model]
  Matrix q, k, v;                    // [n_heads * head_dim, d_model], 2 x [n_kv_heads * head_dim, d_model]
  const float* q_bias = nullptr;     // [q.rows], and so on
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* q_norm = nullptr;  // [head_dim], per head, before RoPE
  const float* k_norm = nullptr;
  Matrix o;                               // [d_model, n_heads * head_dim]
  const float* post_attn_norm = nullptr;  // [d_model], on attention's output (gemma3)
  const float* ffn_norm = nullptr;        // [d_model]
  Matrix gate, up, down;                  // 2 x [d_ff, d_model], [d_model, d_ff]
  const float* post_ffn_norm = nullptr;   // [d_model] (gemma3)
};

// All weights of a model, resident. Owns the memory that the views point into. Immutable once loaded, thread-safe.
struct Weights {
  Matrix token_embedding;  // [n_vocab, d_model]
  std::vector<LayerWeights> layers;
  const float* output_norm = nullptr;   // [d_model]
  Matrix output;                        // [n_vocab, d_model]; the same memory as token_embedding when tied
  const float* rope_factors = nullptr;  // [n_rot / 2] from rope_freqs.weight, or nullptr
  MappedMemory memory;
  uint64_t bytes_per_token = 0;  // weight bytes that decoding one token reads
};

// Where one tensor of a file belongs.
struct WeightSlot {
  std::string tensor;           // its name in the file
  uint64_t rows = 0, cols = 0;  // cols is the file's first dimension; a vector has one row
  bool required = true;
  Matrix* matrix = nullptr;  // one of the two
  const float** vector = nullptr;
};

// Every tensor that a model of this shape has or may have, in order of use: the only list of tensor names. Resizes
// weights.layers; the slots point into `weights`. `output.weight` is optional: a file without it has a tied output.
std::vector<WeightSlot> weight_slots(const Config& config, Weights& weights);

// Whether a tensor of the file can fill the slot. Errors name the tensor: kUnsupported for its type, kMalformed with
// both shapes, or when its rows are not whole blocks.
Status check_tensor(const gguf::TensorInfo& tensor, const WeightSlot& slot);

}  // namespace leanstream::model
