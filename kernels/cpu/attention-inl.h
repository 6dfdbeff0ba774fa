// Online-softmax attention, per Highway target.
// Include inside foreach_target.h's passes only; the guard toggles so that each pass gets its own copy.
//
// The queries of a task (its heads, at one or several positions) are taken in groups. For a group, each block of 32
// cache rows is converted to float once, into an L1-sized tile: first its keys, for the scores of all queries; then
// its values, which are added up under the weights of all queries. What happens to one query is the same, operation by
// operation, whichever queries share its group, so its result depends on its own q, begin and end only:
//   score[t] = sum over d of (scale * q[d]) * k[t, d]         one accumulator per lane, then a fixed tree
//   m' = max(m, max over t of score[t]);  p[t] = exp(score[t] - m')
//   l = l * exp(m - m') + sum over t of p[t]                   one accumulator per lane, then a fixed tree
//   acc[d] = acc[d] * exp(m - m') + sum over t of p[t] * v[t, d]   in ascending t
// with t over the rows of the block that the query sees; at the end, out[d] = acc[d] / l.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/kernels.h"

#if defined(LEANSTREAM_KERNELS_CPU_ATTENTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEANSTREAM_KERNELS_CPU_ATTENTION_INL_H
#undef LEANSTREAM_KERNELS_CPU_ATTENTION_INL_H
#else
#define LEANSTREAM_KERNELS_CPU_ATTENTION_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "kernels/cpu/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leanstream::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using AttentionTag = hn::ScalableTag<float>;
static_assert(hn::MaxLanes(AttentionTag()) <= 16, "vectors divide the 32 of row blocks and of q8_0");

inline constexpr uint32_t kBlockRows = 32;
inline constexpr uint32_t kRowStep = 4;  // rows whose scores are computed together
inline constexpr uint32_t kMaxGroup = 16;
inline constexpr size_t kTileFloats = size_t{kBlockRows} * 256;  // 32 KiB: a block at head_dim 256
inline constexpr size_t kGroupFloats = 16 * 128;                 // 8 KiB of queries, 8 KiB of accumulators
inline constexpr size_t kScoreStride = kBlockRows + kRowStep;    // a tile may end up to 3 rows past the block

// A query head at one position.
struct Query {
  uint32_t begin;  // cache rows that it sees
  uint32_t end;
  float max;  // m above
  float sum;  // l above
};

// All that a group works on. [query, stride] arrays are padded with zeros from head_dim to stride.
struct AttentionScratch {
  alignas(64) float tile[kTileFloats];                 // [rows, stride] keys or values as floats
  alignas(64) float q[kGroupFloats];                   // [query, stride] times scale
  alignas(64) float accumulator[kGroupFloats];         // [query, stride]
  alignas(64) float weight[kMaxGroup * kScoreStride];  // [query, kScoreStride] scores, then p
  Query query[kMaxGroup];
};

// Cache rows [begin, end) as floats into tile [end - begin, stride], then zeros to a whole number of kRowSteps.
HWY_INLINE void load_rows(const AttentionTask& task, const std::byte* cache, uint32_t begin, uint32_t end,
                          uint32_t prefetch_end, size_t stride, float* tile) {
  const AttentionTag d;
  const size_t lanes = hn::Lanes(d);
  const uint32_t head_dim = task.head_dim;
  const size_t row_bytes = kv_head_bytes(task.kv_type, head_dim);
  for (uint32_t row = begin; row < end; ++row, tile += stride) {
    const std::byte* bytes = cache + row * task.kv_stride_bytes;
    // The same rows of the next block: rows lie too far apart for the hardware to guess.
    if (row + kBlockRows < prefetch_end)
      for (size_t i = 0; i < row_bytes; i += 64)
        __builtin_prefetch(bytes + kBlockRows * task.kv_stride_bytes + i, 0, 2);

    size_t i = 0;
    if (task.kv_type == KvType::kF16) {
      const uint16_t* half = reinterpret_cast<const uint16_t*>(bytes);
      for (; i + 4 * lanes <= head_dim; i += 4 * lanes) {
        hn::Store(load_half(d, half + i), d, tile + i);
        hn::Store(load_half(d, half + i + lanes), d, tile + i + lanes);
        hn::Store(load_half(d, half + i + 2 * lanes), d, tile + i + 2 * lanes);
        hn::Store(load_half(d, half + i + 3 * lanes), d, tile + i + 3 * lanes);
      }
      for (; i + lanes <= head_dim; i += lanes) hn::Store(load_half(d, half + i), d, tile + i);
      for (; i < head_dim; ++i) tile[i] = half_to_float(half[i]);
    } else {
      const hn::Rebind<int8_t, AttentionTag> d8;
      const hn::Rebind<int32_t, AttentionTag> d32;
      for (; i < head_dim; bytes += 34) {
        uint16_t half;
        std::memcpy(&half, bytes, sizeof half);
        const auto scale = hn::Set(d, half_to_float(half));
        const int8_t* q = reinterpret_cast<const int8_t*>(bytes + 2);
        for (const size_t stop = i + 32; i < stop; i += lanes, q += lanes)
          hn::Store(hn::Mul(scale, hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, q)))), d, tile + i);
      }
    }
    std::fill(tile + i, tile + stride, 0.0f);
  }
  std::fill_n(tile, (kRowStep - (end - begin) % kRowStep) % kRowStep * stride, 0.0f);
}

// out[0..4) = the sums over all lanes of a, b, c and e.
template <class V>
HWY_INLINE void sum_four(V a, V b, V c, V e, float* out) {
  const AttentionTag d;
#if HWY_TARGET == HWY_SCALAR
  out[0] = hn::GetLane(hn::SumOfLanes(d, a));
  out[1] = hn::GetLane(hn::SumOfLanes(d, b));
  out[2] = hn::GetLane(hn::SumOfLanes(d, c));
  out[3] = hn::GetLane(hn::SumOfLanes(d, e));
#else
  // Two transposing additions within 128-bit blocks leave the block sums of a, b, c, e side by side ...
  const hn::Repartition<double, AttentionTag> d64;
  const auto ab = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  const auto blocks =
      hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(d64, ab, ce)));
  // ... and the blocks are folded in halves.
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(blocks, d, out);
  } else {
    const hn::Half<AttentionTag> dh;
    const auto half = hn::Add(hn::LowerHalf(dh, blocks), hn::UpperHalf(dh, blocks));
    if constexpr (hn::MaxLanes(dh) == 4) {
      hn::StoreU(half, dh, out);
    } else {
      const hn::Half<hn::Half<AttentionTag> > dq;
      hn::StoreU(hn::Add(hn::LowerHalf(dq, half), hn::UpperHalf(dq, half)), dq, out);
    }
  }
#endif
}

// Scores of kQueries (1 or 2) queries against four tile rows, into score[0..4) and score[kScoreStride ..+4).
template <int kQueries>
HWY_INLINE void score_rows(const float* q, const float* k, size_t stride, float* score) {
  const AttentionTag d;
  auto a0 = hn::Zero(d), a1 = hn::Zero(d), a2 = hn::Zero(d), a3 = hn::Zero(d);
  auto b0 = hn::Zero(d), b1 = hn::Zero(d), b2 = hn::Zero(d), b3 = hn::Zero(d);
  for (size_t i = 0; i < stride; i += hn::Lanes(d)) {
    const auto k0 = hn::Load(d, k + i), k1 = hn::Load(d, k + stride + i);
    const auto k2 = hn::Load(d, k + 2 * stride + i), k3 = hn::Load(d, k + 3 * stride + i);
    const auto qa = hn::Load(d, q + i);
    a0 = hn::MulAdd(qa, k0, a0);
    a1 = hn::MulAdd(qa, k1, a1);
    a2 = hn::MulAdd(qa, k2, a2);
    a3 = hn::MulAdd(qa, k3, a3);
    if constexpr (kQueries == 2) {
      const auto qb = hn::Load(d, q + stride + i);
      b0 = hn::MulAdd(qb, k0, b0);
      b1 = hn::MulAdd(qb, k1, b1);
      b2 = hn::MulAdd(qb, k2, b2);
      b3 = hn::MulAdd(qb, k3, b3);
    }
  }
  sum_four(a0, a1, a2, a3, score);
  if constexpr (kQueries == 2) sum_four(b0, b1, b2, b3, score + kScoreStride);
}

// Four vectors of sums over ascending t < rows: a += pa[t] * va[t], b += pb[t] * vb[t], where va and vb step by
// `stride`. Two such streams hide the latency of the additions. kShared: va == vb.
template <int kStreams, bool kShared>
HWY_INLINE void add_four_vectors(uint32_t rows, size_t stride, const float* pa, const float* va, float* a,
                                 const float* pb, const float* vb, float* b) {
  const AttentionTag d;
  const size_t n = hn::Lanes(d);
  auto a0 = hn::Load(d, a), a1 = hn::Load(d, a + n), a2 = hn::Load(d, a + 2 * n), a3 = hn::Load(d, a + 3 * n);
  auto b0 = hn::Load(d, b), b1 = hn::Load(d, b + n), b2 = hn::Load(d, b + 2 * n), b3 = hn::Load(d, b + 3 * n);
  for (uint32_t t = 0; t < rows; ++t, va += stride, vb += stride) {
    auto v0 = hn::Load(d, va), v1 = hn::Load(d, va + n), v2 = hn::Load(d, va + 2 * n), v3 = hn::Load(d, va + 3 * n);
    const auto weight_a = hn::Set(d, pa[t]);
    a0 = hn::MulAdd(weight_a, v0, a0);
    a1 = hn::MulAdd(weight_a, v1, a1);
    a2 = hn::MulAdd(weight_a, v2, a2);
    a3 = hn::MulAdd(weight_a, v3, a3);
    if constexpr (kStreams == 2) {
      if constexpr (!kShared)
        v0 = hn::Load(d, vb), v1 = hn::Load(d, vb + n), v2 = hn::Load(d, vb + 2 * n), v3 = hn::Load(d, vb + 3 * n);
      const auto weight_b = hn::Set(d, pb[t]);
      b0 = hn::MulAdd(weight_b, v0, b0);
      b1 = hn::MulAdd(weight_b, v1, b1);
      b2 = hn::MulAdd(weight_b, v2, b2);
      b3 = hn::MulAdd(weight_b, v3, b3);
    }
  }
  hn::Store(a0, d, a), hn::Store(a1, d, a + n), hn::Store(a2, d, a + 2 * n), hn::Store(a3, d, a + 3 * n);
  if constexpr (kStreams == 2)
    hn::Store(b0, d, b), hn::Store(b1, d, b + n), hn::Store(b2, d, b + 2 * n), hn::Store(b3, d, b + 3 * n);
}

// acc[0..stride) += p[t] * v[t, 0..stride) in ascending t < rows; for kQueries == 2 also the next query's.
template <int kQueries>
HWY_INLINE void add_weighted(const float* p, const float* v, uint32_t rows, size_t stride, float* acc) {
  const AttentionTag d;
  const size_t four = 4 * hn::Lanes(d);
  size_t i = 0;
  if constexpr (kQueries == 2) {
    for (; i + four <= stride; i += four)
      add_four_vectors<2, true>(rows, stride, p, v + i, acc + i, p + kScoreStride, v + i, acc + stride + i);
  } else {
    for (; i + 2 * four <= stride; i += 2 * four)
      add_four_vectors<2, false>(rows, stride, p, v + i, acc + i, p, v + i + four, acc + i + four);
    for (; i + four <= stride; i += four) add_four_vectors<1, true>(rows, stride, p, v + i, acc + i, p, v + i, acc + i);
  }
  for (; i < stride; i += hn::Lanes(d))
    for (int query = 0; query < kQueries; ++query) {
      float* out = acc + query * stride + i;
      auto sum = hn::Load(d, out);
      for (uint32_t t = 0; t < rows; ++t)
        sum = hn::MulAdd(hn::Set(d, p[query * kScoreStride + t]), hn::Load(d, v + t * stride + i), sum);
      hn::Store(sum, d, out);
    }
}

// e^x for x <= 0, also for -infinity (0) and NaN (NaN, where hn::Exp gives 0).
template <class D>
HWY_INLINE hn::Vec<D> exp_of_score(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
}

// Turns the scores of block rows [begin, end) into weights, updates max and sum, rescales the accumulator.
HWY_INLINE void update_softmax(uint32_t begin, uint32_t end, size_t stride, float* weight, float* acc, Query& query) {
  const AttentionTag d;
  const size_t lanes = hn::Lanes(d);
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  std::fill(weight, weight + begin, kMinusInfinity);
  std::fill(weight + end, weight + kBlockRows, kMinusInfinity);

  auto max = hn::Set(d, query.max);
  for (size_t i = 0; i < kBlockRows; i += lanes) max = hn::Max(max, hn::LoadU(d, weight + i));
  const float new_max = hn::GetLane(hn::MaxOfLanes(d, max));
  // With scores of minus infinity only, exp(-inf - 0) is the 0 that it must be.
  const float shift = new_max == kMinusInfinity ? 0.0f : new_max;

  auto sum = hn::Zero(d);
  for (size_t i = 0; i < kBlockRows; i += lanes) {
    const auto p = exp_of_score(d, hn::Sub(hn::LoadU(d, weight + i), hn::Set(d, shift)));
    hn::StoreU(p, d, weight + i);
    sum = hn::Add(sum, p);
  }
  const float block_sum = hn::GetLane(hn::SumOfLanes(d, sum));

  if (query.max == new_max) {
    query.sum += block_sum;
    return;
  }
  const auto correction = exp_of_score(d, hn::Set(d, query.max - shift));
  for (size_t i = 0; i < stride; i += lanes) hn::Store(hn::Mul(hn::Load(d, acc + i), correction), d, acc + i);
  query.sum = query.sum * hn::GetLane(correction) + block_sum;
  query.max = new_max;
}

// The rows of a block, as offsets from its start, that a query sees: [begin, end), empty if begin >= end.
struct BlockRange {
  uint32_t begin;
  uint32_t end;
};
inline BlockRange rows_in_block(const Query& query, uint32_t block) {
  return {std::max(query.begin, block) - block, std::min(std::max(query.end, block) - block, kBlockRows)};
}

// Adds tile rows, of which the first is block row `first`, to the accumulators of queries n and n + 1: first those that
// one of them sees before the other, then those that both see, then the rest.
HWY_INLINE void add_weighted_pair(AttentionScratch& s, uint32_t n, uint32_t block, uint32_t first, uint32_t count,
                                  size_t stride) {
  BlockRange range[2];
  for (uint32_t i = 0; i < 2; ++i) {
    range[i] = rows_in_block(s.query[n + i], block);
    range[i].begin = std::max(range[i].begin, first);
    range[i].end = std::min(range[i].end, first + count);
  }
  const uint32_t both_begin = std::max(range[0].begin, range[1].begin);
  const uint32_t both_end = std::min(range[0].end, range[1].end);
  const auto add_one = [&](uint32_t i, uint32_t begin, uint32_t end) HWY_ATTR {
    if (begin < end)
      add_weighted<1>(s.weight + (n + i) * kScoreStride + begin, s.tile + (begin - first) * stride, end - begin, stride,
                      s.accumulator + (n + i) * stride);
  };
  if (both_begin >= both_end) {
    for (uint32_t i = 0; i < 2; ++i) add_one(i, range[i].begin, range[i].end);
    return;
  }
  for (uint32_t i = 0; i < 2; ++i) add_one(i, range[i].begin, both_begin);
  add_weighted<2>(s.weight + n * kScoreStride + both_begin, s.tile + (both_begin - first) * stride,
                  both_end - both_begin, stride, s.accumulator + n * stride);
  for (uint32_t i = 0; i < 2; ++i) add_one(i, both_end, range[i].end);
}

// One block of cache rows [begin, end) for queries [0, count).
HWY_INLINE void attend_block(const AttentionTask& task, AttentionScratch& s, uint32_t count, uint32_t block,
                             uint32_t begin, uint32_t end, uint32_t group_end, size_t stride) {
  // A whole block, unless head_dim exceeds 256.
  const uint32_t tile_rows =
      static_cast<uint32_t>(std::min<size_t>(kTileFloats / stride, kBlockRows)) & ~(kRowStep - 1);

  for (uint32_t row = begin; row < end; row += tile_rows) {
    const uint32_t rows = std::min(tile_rows, end - row);
    load_rows(task, task.k, row, row + rows, group_end, stride, s.tile);
    for (uint32_t n = 0; n < count; n += 2)
      for (uint32_t t = 0; t < rows; t += kRowStep) {
        const float* q = s.q + n * stride;
        float* score = s.weight + n * kScoreStride + (row - block) + t;
        if (n + 1 < count)
          score_rows<2>(q, s.tile + t * stride, stride, score);
        else
          score_rows<1>(q, s.tile + t * stride, stride, score);
      }
  }

  for (uint32_t n = 0; n < count; ++n) {
    const BlockRange range = rows_in_block(s.query[n], block);
    if (range.begin < range.end)
      update_softmax(range.begin, range.end, stride, s.weight + n * kScoreStride, s.accumulator + n * stride,
                     s.query[n]);
  }

  for (uint32_t row = begin; row < end; row += tile_rows) {
    const uint32_t rows = std::min(tile_rows, end - row);
    load_rows(task, task.v, row, row + rows, group_end, stride, s.tile);
    for (uint32_t n = 0; n + 1 < count; n += 2) add_weighted_pair(s, n, block, row - block, rows, stride);
    if (count % 2 == 0) continue;
    const uint32_t n = count - 1;
    BlockRange range = rows_in_block(s.query[n], block);
    range.begin = std::max(range.begin, row - block);
    range.end = std::min(range.end, row - block + rows);
    if (range.begin < range.end)
      add_weighted<1>(s.weight + n * kScoreStride + range.begin, s.tile + (range.begin - (row - block)) * stride,
                      range.end - range.begin, stride, s.accumulator + n * stride);
  }
}

// Queries [first, first + count) of the task; query i is head i % n_queries of position i / n_queries.
HWY_INLINE void attend_group(const AttentionTask& task, uint32_t first, uint32_t count, size_t stride) {
  AttentionScratch s;
  const uint32_t head_dim = task.head_dim;
  uint32_t group_begin = UINT32_MAX, group_end = 0;
  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t position = (first + n) / task.n_queries, head = (first + n) % task.n_queries;
    const float* q = task.q + position * task.position_stride + size_t{head} * head_dim;
    float* scaled = s.q + n * stride;
    for (uint32_t i = 0; i < head_dim; ++i) scaled[i] = q[i] * task.scale;
    std::fill(scaled + head_dim, scaled + stride, 0.0f);
    std::fill_n(s.accumulator + n * stride, stride, 0.0f);
    s.query[n] = {task.first_row(position), task.end + position, -std::numeric_limits<float>::infinity(), 0.0f};
    group_begin = std::min(group_begin, s.query[n].begin);
    group_end = std::max(group_end, s.query[n].end);
  }

  for (uint32_t block = group_begin / kBlockRows * kBlockRows; block < group_end; block += kBlockRows)
    attend_block(task, s, count, block, std::max(block, group_begin), std::min(block + kBlockRows, group_end),
                 group_end, stride);

  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t position = (first + n) / task.n_queries, head = (first + n) % task.n_queries;
    float* out = task.out + position * task.position_stride + size_t{head} * head_dim;
    for (uint32_t i = 0; i < head_dim; ++i) out[i] = s.accumulator[n * stride + i] / s.query[n].sum;
  }
}

inline void attention(const AttentionTask& task) {
  const AttentionTag d;
  const size_t lanes = hn::Lanes(d);
  const size_t stride = (task.head_dim + lanes - 1) / lanes * lanes;
  const uint32_t group = static_cast<uint32_t>(std::min<size_t>(kGroupFloats / stride, kMaxGroup));
  const uint32_t queries = task.n_positions * task.n_queries;
  for (uint32_t first = 0; first < queries; first += group)
    attend_group(task, first, std::min(group, queries - first), stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace leanstream::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
