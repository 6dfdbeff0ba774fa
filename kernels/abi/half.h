#pragma once

#include <bit>
#include <cstdint>

namespace leanstream {

// Scalar conversions of IEEE half and bfloat16 numbers, round to nearest even, bit-identical to x86's F16C and to ARM's
// FCVT: infinities and the sign of zero survive, NaNs become quiet and keep the payload that fits.

inline float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  uint32_t bits;
  if (magnitude < 0x0400u) {  // zero or subnormal: a multiple of 2^-24
    bits = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  } else if (magnitude < 0x7c00u) {
    bits = (magnitude << 13) + (uint32_t{127 - 15} << 23);
  } else {
    bits = 0x7f800000u | magnitude << 13 | (magnitude > 0x7c00u ? 0x00400000u : 0u);
  }
  return std::bit_cast<float>(sign | bits);
}

inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x03ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14; floats in [0.5, 1) are 2^-24 apart, so the addition rounds
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = ((magnitude + 0x0fffu + (magnitude >> 13 & 1u)) >> 13) - (uint32_t{127 - 15} << 10);
  }
  return static_cast<uint16_t>(sign | half);
}

inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace leanstream
