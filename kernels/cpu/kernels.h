#pragma once

// The CPU kernels: one table of functions per SIMD target, chosen once at start-up. Every function is pure, touches
// only its arguments, allocates nothing and may run on several threads at once over disjoint outputs.
// kernels/reference/ has a slow twin of each.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/abi/matrix.h"

namespace leanstream::kernels {

// A batch of activation vectors, borrowed. Float weight types read `f32`; quantised ones read the other three, which
// Kernels::quantize fills: blocks of 32 with scale = max|x| / 127 and q = round-to-nearest-even(x * 127 / max|x|).
struct Activations {
  uint32_t count = 0;              // vectors
  uint32_t cols = 0;               // elements of each
  const float* f32 = nullptr;      // [count, cols]
  const int8_t* q8 = nullptr;      // [count, cols]
  const float* scale = nullptr;    // [count, cols / 32]
  const int32_t* sum16 = nullptr;  // [count, cols / 16] sums of 16 consecutive q8
};

enum class GluActivation : uint8_t { kSilu, kGeluTanh, kRelu };

enum class RopeStyle : uint8_t {
  kInterleaved,  // pairs (2i, 2i+1): llama
  kHalves,       // pairs (i, i + n_rot/2): qwen2, qwen3, gemma3
};

enum class KvType : uint8_t { kF16, kQ8_0 };

// Bytes of one cached head vector. head_dim is a multiple of 32 for kQ8_0.
constexpr size_t kv_head_bytes(KvType type, uint32_t head_dim) {
  return type == KvType::kF16 ? size_t{head_dim} * 2 : size_t{head_dim} / 32 * 34;
}

// The most head_dim that attention takes (it keeps its scratch on the stack).
inline constexpr uint32_t kMaxHeadDim = 2048;

// One attention task: `n_queries` heads that share a KV head, at `n_positions` consecutive positions. Position 0 sees
// cache rows [begin, end), each further position one row more; with a window, only the last `window` of them.
struct AttentionTask {
  KvType kv_type = KvType::kF16;
  uint32_t head_dim = 0;         // 1 .. kMaxHeadDim, fastest for multiples of 64 up to 256
  uint32_t n_queries = 0;        // query heads of this KV head (GQA group)
  const float* q = nullptr;      // [n_positions, n_queries, head_dim], RoPE applied
  const std::byte* k = nullptr;  // row t at k + t * kv_stride_bytes: kv_head_bytes(kv_type, head_dim) bytes
  const std::byte* v = nullptr;
  size_t kv_stride_bytes = 0;
  uint32_t begin = 0;    // first cache row seen (sliding windows begin above 0)
  uint32_t end = 0;      // one past the last, > begin
  float scale = 1.0f;    // multiplies q.k
  float* out = nullptr;  // [n_positions, n_queries, head_dim]

  // Several positions read and convert each cache row once: 8 to 16 queries a task pay off in prefill. The result of a
  // position is bit for bit that of a task of its own.
  uint32_t n_positions = 1;
  size_t position_stride = 0;  // floats from one position's q to the next's, and from out to out
  uint32_t window = 0;         // most rows that a position sees; 0: no limit

  constexpr uint32_t first_row(uint32_t position) const {
    const uint32_t past = end + position;
    return window != 0 && past > window && past - window > begin ? past - window : begin;
  }
};

struct Kernels {
  const char* name;  // "amx", "avx512vnni", "avx2", "neon-dotprod", "portable"

  // Matrices --------------------------------------------------------------------------------------------------------

  // Interleaves `n_rows` (1..16) file rows, `row_stride` bytes apart, into one panel of panel_bytes(type, cols).
  // Missing rows become zeros.
  void (*pack_panel)(WeightType type, uint32_t cols, uint32_t n_rows, const std::byte* rows, size_t row_stride,
                     std::byte* panel);

  // out[n * out_stride + r] = sum_k w[r, k] * x[n, k]  for r in [row_begin, row_end) and every n, in the canonical sum
  // (kSumGroup). row_begin is a multiple of 16; row_end too, or w.rows. Bit-identical for both layouts and any count.
  void (*matmul)(const Matrix& w, const Activations& x, uint32_t row_begin, uint32_t row_end, float* out,
                 size_t out_stride);

  // out[0..cols) = row `row` of w, times `factor`.
  void (*dequantize_row)(const Matrix& w, uint32_t row, float factor, float* out);

  // Fills q8 [cols], scale [cols / 32], sum16 [cols / 16] from x [cols]; cols is a multiple of 32.
  void (*quantize)(const float* x, uint32_t cols, int8_t* q8, float* scale, int32_t* sum16);

  // Vectors ---------------------------------------------------------------------------------------------------------

  // out[i] = x[i] * weight[i] / sqrt(mean(x^2) + epsilon), n elements; out may be x. Sum in double or a fixed tree.
  void (*rms_norm)(const float* x, const float* weight, uint32_t n, float epsilon, float* out);

  // x[i] += y[i]
  void (*add)(float* x, const float* y, uint32_t n);

  // out[i] = act(gate[i]) * up[i]; out may be gate or up.
  void (*glu)(GluActivation activation, const float* gate, const float* up, uint32_t n, float* out);

  // Rotates one head in place. cos/sin: [n_rot / 2] for this position; elements from n_rot on stay.
  void (*rope)(RopeStyle style, const float* cos, const float* sin, uint32_t n_rot, float* x);

  // Stores one head vector [head_dim] in the cache's form.
  void (*store_kv)(KvType type, const float* x, uint32_t head_dim, std::byte* out);

  // Online-softmax attention in fixed blocks of 32 cache rows counted from row 0: bit-identical however the work is
  // shared out.
  void (*attention)(const AttentionTask& task);

  // Smallest index of the largest of x[0..n); n > 0. NaN anywhere gives -1.
  int64_t (*argmax)(const float* x, uint32_t n);

  // log(sum(exp(x[i]))), stable, double accumulation in a fixed order. NaN when any x is NaN.
  double (*log_sum_exp)(const float* x, uint32_t n);

  // The sum of n words, modulo 2^64: the plainest loop that reads memory, the yardstick of its bandwidth.
  uint64_t (*sum_words)(const uint64_t* x, size_t n);
};

// The best table that this CPU runs. `max_level` is a name of all_kernels(), to force a lesser target in tests and A/B
// runs; nullptr for the best. nullptr when `max_level` names a target that this CPU lacks or nobody has.
const Kernels* select_kernels(const char* max_level = nullptr);

// Every table that this CPU runs, best first.
std::span<const Kernels* const> all_kernels();

}  // namespace leanstream::kernels
