// Compiled once per SIMD target by foreach_target.h, which includes this file again for each.
#include "kernels/cpu/vector_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway wants it.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/half-inl.h"
#include "kernels/cpu/vector_tables.h"

HWY_BEFORE_NAMESPACE();
namespace leanstream::kernels {
namespace HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;  // same arithmetic as a lane of Tag: what is left over gets the same bits

// Sum of squares in double: lanes in two accumulators, then a fixed tree, then the rest.
double sum_of_squares(const float* x, uint32_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const size_t lanes = hn::Lanes(d);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(df, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(df, x + i + lanes));
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void rms_norm(const float* x, const float* weight, uint32_t n, float epsilon, float* out) {
  const float scale = static_cast<float>(1.0 / std::sqrt(sum_of_squares(x, n) / n + static_cast<double>(epsilon)));
  const Tag d;
  const auto factor = hn::Set(d, scale);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), factor), hn::LoadU(d, weight + i)), d, out + i);
  for (; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void add(float* x, const float* y, uint32_t n) {
  const Tag d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, x + i);
  for (; i < n; ++i) x[i] += y[i];
}

// x / (1 + exp(-t)): SiLU for t = x.
template <class D>
HWY_INLINE hn::Vec<D> times_sigmoid(D d, hn::Vec<D> x, hn::Vec<D> t) {
  // From 104 on, exp is infinite and the quotient 0; hn::Exp is not made for more.
  const auto e = hn::Exp(d, hn::Min(hn::Neg(t), hn::Set(d, 104.0f)));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), e));
}

struct Silu {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return times_sigmoid(d, x, x);
  }
};

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), with u = sqrt(2 / pi) * (x + 0.044715 x^3).
struct GeluTanh {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    constexpr float kTwiceSqrtTwoOverPi = 1.5957691216057308f;
    const auto cubic =
        hn::MulAdd(hn::Mul(x, x), hn::Set(d, kTwiceSqrtTwoOverPi * 0.044715f), hn::Set(d, kTwiceSqrtTwoOverPi));
    return times_sigmoid(d, x, hn::Mul(x, cubic));
  }
};

struct Relu {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // unlike Max, keeps NaN
  }
};

template <class Activation>
HWY_INLINE void glu_with(Activation activation, const float* gate, const float* up, uint32_t n, float* out) {
  const Tag d;
  const One one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(activation(d, hn::LoadU(d, gate + i)), hn::LoadU(d, up + i)), d, out + i);
  for (; i < n; ++i)
    hn::StoreU(hn::Mul(activation(one, hn::LoadU(one, gate + i)), hn::LoadU(one, up + i)), one, out + i);
}

void glu(GluActivation activation, const float* gate, const float* up, uint32_t n, float* out) {
  switch (activation) {
    case GluActivation::kSilu:
      return glu_with(Silu(), gate, up, n, out);
    case GluActivation::kGeluTanh:
      return glu_with(GeluTanh(), gate, up, n, out);
    case GluActivation::kRelu:
      return glu_with(Relu(), gate, up, n, out);
  }
}

void rotate_pair(float cos, float sin, float& x, float& y) {
  const float rotated = x * cos - y * sin;
  y = x * sin + y * cos;
  x = rotated;
}

// A few microseconds a token: plain loops do.
void rope(RopeStyle style, const float* cos, const float* sin, uint32_t n_rot, float* x) {
  const uint32_t pairs = n_rot / 2;
  if (style == RopeStyle::kInterleaved)
    for (uint32_t i = 0; i < pairs; ++i) rotate_pair(cos[i], sin[i], x[2 * i], x[2 * i + 1]);
  else
    for (uint32_t i = 0; i < pairs; ++i) rotate_pair(cos[i], sin[i], x[i], x[i + pairs]);
}

// 32 numbers as a half d = max|x| / 127 and 32 int8. A block with an infinity or NaN becomes NaN as a whole.
void store_q8_block(const float* x, std::byte* out) {
  const Tag d;
  const hn::Rebind<int8_t, Tag> d8;
  const size_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(d), not_finite = hn::Zero(d);
  for (size_t i = 0; i < 32; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, hn::Abs(v));
    not_finite = hn::Add(not_finite, hn::Sub(v, v));  // 0 or NaN
  }
  float max = hn::GetLane(hn::MaxOfLanes(d, largest));
  const bool finite = hn::GetLane(hn::SumOfLanes(d, not_finite)) == 0.0f;
  if (!finite) max = std::numeric_limits<float>::quiet_NaN();

  const uint16_t scale = float_to_half(max / 127.0f);
  std::memcpy(out, &scale, sizeof scale);
  int8_t* q = reinterpret_cast<int8_t*>(out + sizeof scale);
  const auto inverse = hn::Set(d, finite && max > 0.0f ? 127.0f / max : 0.0f);
  for (size_t i = 0; i < 32; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), inverse);
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::IfThenElseZero(hn::Eq(scaled, scaled), scaled))), d8, q + i);
  }
}

void store_kv(KvType type, const float* x, uint32_t head_dim, std::byte* out) {
  if (type == KvType::kQ8_0) {
    for (uint32_t i = 0; i < head_dim; i += 32, out += 34) store_q8_block(x + i, out);
    return;
  }
  const Tag d;
  uint16_t* half = reinterpret_cast<uint16_t*>(out);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= head_dim; i += hn::Lanes(d)) store_half(d, hn::LoadU(d, x + i), half + i);
  for (; i < head_dim; ++i) half[i] = float_to_half(x[i]);
}

// The largest of x[0..n), n > 0; NaN when there is a NaN.
float largest_or_nan(const float* x, uint32_t n) {
  const Tag d;
  auto largest = hn::Set(d, x[0]), nan = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, v);
    nan = hn::IfThenElse(hn::Eq(v, v), nan, v);  // Max may drop it
  }
  float max = hn::GetLane(hn::MaxOfLanes(d, largest));
  bool has_nan = std::isnan(hn::GetLane(hn::SumOfLanes(d, nan)));
  for (; i < n; ++i) {
    max = std::max(max, x[i]);
    has_nan |= std::isnan(x[i]);
  }
  return has_nan ? std::numeric_limits<float>::quiet_NaN() : max;
}

int64_t argmax(const float* x, uint32_t n) {
  const float max = largest_or_nan(x, n);
  if (std::isnan(max)) return -1;
  const Tag d;
  size_t i = 0;
  while (i + hn::Lanes(d) <= n && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), hn::Set(d, max)))) i += hn::Lanes(d);
  while (i < n && x[i] != max) ++i;
  return i < n ? static_cast<int64_t>(i) : -1;
}

double log_sum_exp(const float* x, uint32_t n) {
  const float max = largest_or_nan(x, n);
  if (!std::isfinite(max)) return max;  // also NaN; infinities are their own sum
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const One one;
  auto sums = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    sums = hn::Add(sums, hn::PromoteTo(d, hn::Exp(df, hn::Sub(hn::LoadU(df, x + i), hn::Set(df, max)))));
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) sum += hn::GetLane(hn::Exp(one, hn::Set(one, x[i] - max)));
  return static_cast<double>(max) + std::log(sum);
}

// Four sums side by side, so that the loads and not the additions are what takes time.
uint64_t sum_words(const uint64_t* x, size_t n) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, x + i));
    b = hn::Add(b, hn::LoadU(d, x + i + lanes));
    c = hn::Add(c, hn::LoadU(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  uint64_t sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) sum += x[i];
  return sum;
}

}  // namespace

inline constexpr VectorKernels kVectorKernels = {rms_norm,  add,    glu,         rope,     store_kv,
                                                 attention, argmax, log_sum_exp, sum_words};

}  // namespace HWY_NAMESPACE

template <>
VectorTable vector_table<HWY_TARGET>() {
  return {HWY_TARGET, hwy::TargetName(HWY_TARGET), &HWY_NAMESPACE::kVectorKernels};
}

}  // namespace leanstream::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leanstream::kernels {
namespace {

// Highway's emulation of vectors in plain C++, its last resort: it is wrong where clang's sanitizers look on.
constexpr int64_t kEmulation = HWY_EMU128 | HWY_SCALAR;

// Highway gives the better targets of an architecture the lower bits.
template <size_t... kBit>
std::vector<VectorTable> runnable_tables(std::index_sequence<kBit...>) {
  std::vector<VectorTable> tables;
  for (const VectorTable& table : {vector_table<int64_t{1} << kBit>()...})
    if (table.kernels != nullptr && (hwy::SupportedTargets() & table.target) != 0) tables.push_back(table);
  if ((tables.front().target & kEmulation) == 0)
    std::erase_if(tables, [](const VectorTable& table) { return (table.target & kEmulation) != 0; });
  return tables;
}

int64_t best_target_within(VectorLevel level) {
  switch (level) {
    case VectorLevel::kSse4:
      return HWY_SSE4;
    case VectorLevel::kAvx2:
      return HWY_AVX2;
    case VectorLevel::kBest:
      return 1;
  }
  return 1;
}

}  // namespace

std::vector<VectorTable> vector_tables() {
  return runnable_tables(std::make_index_sequence<63>());
}

const VectorKernels& vector_kernels(VectorLevel level) {
  const std::vector<VectorTable> tables = vector_tables();
  for (const VectorTable& table : tables)
    if (table.target >= best_target_within(level)) return *table.kernels;
  return *tables.back().kernels;
}

}  // namespace leanstream::kernels
#endif  // HWY_ONCE
