#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kernels/abi/matrix.h"
#include "model/config.h"

namespace leanstream::model {

// The rows of a matrix that are not resident: from `begin` to its end, in pieces of `rows_per_piece` rows, a multiple
// of kPanelRows; the last piece may be shorter. Piece i of the matrix is piece `first + i * step` of a pass over the
// model.
struct StreamedRows {
  uint32_t begin = 0;
  uint32_t rows_per_piece = 0;  // 0: every row is resident
  uint32_t first = 0;
  uint32_t step = 1;

  uint32_t piece(uint32_t i) const { return first + i * step; }
};

// A weight matrix: its first rows are resident; the others, if any, come with each pass over the model.
struct WeightMatrix {
  Matrix resident;    // rows [0, resident.rows); type and columns are those of the whole
  uint32_t rows = 0;  // of the whole; 0 where the architecture has no such matrix
  StreamedRows streamed;

  explicit operator bool() const { return rows != 0; }
  uint32_t piece_count() const {
    return streamed.rows_per_piece == 0 ? 0 : (rows - streamed.begin - 1) / streamed.rows_per_piece + 1;
  }
};

// One transformer layer's weights as typed views. Empty (false / nullptr) where the architecture has none.
struct LayerWeights {
  const float* attn_norm = nullptr;  // [d_model]
  WeightMatrix q, k, v;              // [n_heads * head_dim, d_model], 2 x [n_kv_heads * head_dim, d_model]
  const float* q_bias = nullptr;     // [q.rows], and so on
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* q_norm = nullptr;  // [head_dim], per head, before RoPE
  const float* k_norm = nullptr;
  WeightMatrix o;                         // [d_model, n_heads * head_dim]
  const float* post_attn_norm = nullptr;  // [d_model], on attention's output (gemma3)
  const float* ffn_norm = nullptr;        // [d_model]
  WeightMatrix gate, up, down;            // 2 x [d_ff, d_model], [d_model, d_ff]; gate and up are split alike
  const float* post_ffn_norm = nullptr;   // [d_model] (gemma3)
};

// All weights of a model. Owns the memory that the resident views point into. Immutable once loaded, thread-safe.
struct Weights {
  WeightMatrix token_embedding;  // [n_vocab, d_model]; with no rows resident they are read as their tokens come
  std::vector<LayerWeights> layers;
  const float* output_norm = nullptr;   // [d_model]
  WeightMatrix output;                  // [n_vocab, d_model], resident; the memory of token_embedding when tied
  const float* rope_factors = nullptr;  // [n_rot / 2] from rope_freqs.weight, or nullptr
  MappedMemory memory;
  uint64_t bytes_per_token = 0;  // weight bytes that decoding one token uses
};

// Where one tensor of a file belongs.
struct WeightSlot {
  std::string tensor;           // its name in the file
  uint64_t rows = 0, cols = 0;  // cols is the file's first dimension; a vector has one row
  bool required = true;
  WeightMatrix* matrix = nullptr;  // one of the two
  const float** vector = nullptr;
};

// Every tensor that a model of this shape has or may have, in order of use: the only list of tensor names. Resizes
// weights.layers; the slots point into `weights`. `output.weight` is optional: a file without it has a tied output.
std::vector<WeightSlot> weight_slots(const Config& config, Weights& weights);

// Whether a tensor of the file can fill the slot. Errors name the tensor: kUnsupported for its type, kMalformed with
// both shapes, or when its rows are not whole blocks.
Status check_tensor(const gguf::TensorInfo& tensor, const WeightSlot& slot);

}  // namespace leanstream::model
