// Vectors of half-precision numbers in memory to float and back, per Highway target.
// Include inside foreach_target.h's passes only; the guard toggles so that each pass gets its own copy.

#include "kernels/abi/half.h"

#if defined(LEANSTREAM_KERNELS_CPU_HALF_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEANSTREAM_KERNELS_CPU_HALF_INL_H
#undef LEANSTREAM_KERNELS_CPU_HALF_INL_H
#else
#define LEANSTREAM_KERNELS_CPU_HALF_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leanstream::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's own conversions of targets without the instructions truncate, and lose infinities.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || (HWY_ARCH_ARM_A64 && HWY_TARGET <= HWY_NEON)
inline constexpr bool kHasHalfInstructions = true;
#else
inline constexpr bool kHasHalfInstructions = false;
#endif

// Lanes(d) halves at `half`, bit-identical to half_to_float for all but signalling NaNs.
template <class D>
HWY_INLINE hn::Vec<D> load_half(D d, const uint16_t* half) {
  if constexpr (kHasHalfInstructions) {
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(half)));
  } else {
    const hn::Rebind<uint16_t, D> du16;
    const hn::Rebind<uint32_t, D> du;
    const auto bits = hn::PromoteTo(du, hn::LoadU(du16, half));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffu));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    // Exponent and mantissa in a float's place are 2^-112 of the number; the product is exact, subnormals included.
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto finite = hn::BitCast(du, hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112f)));
    const auto special = hn::Or(shifted, hn::Set(du, 0x7f800000u));
    // As floats: magnitudes are below 2^15, so signed and unsigned comparison agree.
    const auto is_special = hn::Gt(hn::ConvertTo(d, hn::BitCast(hn::Rebind<int32_t, D>(), magnitude)),
                                   hn::Set(d, static_cast<float>(0x7bff)));
    const auto chosen = hn::IfThenElse(is_special, hn::BitCast(d, special), hn::BitCast(d, finite));
    return hn::Or(chosen, hn::BitCast(d, sign));
  }
}

// Round to nearest even, bit-identical to float_to_half.
template <class D>
HWY_INLINE void store_half(D d, hn::Vec<D> v, uint16_t* half) {
  if constexpr (kHasHalfInstructions) {
    const hn::Rebind<hwy::float16_t, D> dh;
    hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(half));
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) half[i] = float_to_half(lanes[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace leanstream::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
