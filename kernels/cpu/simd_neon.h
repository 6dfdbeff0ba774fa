#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace leanstream::kernels {
namespace {

// 16 lanes of 32 bits in four registers, with the dot product of Armv8.2. simd_portable.h says what each function
// means.
struct Neon {
  struct Ints {
    int32x4_t quad[4];
  };
  struct Floats {
    float32x4_t quad[4];
  };

  static constexpr int kSignedBias = 0;

  template <typename Function>
  static Ints each(Function function) {
    return {{function(0), function(1), function(2), function(3)}};
  }
  template <typename Function>
  static Floats each_float(Function function) {
    return {{function(0), function(1), function(2), function(3)}};
  }
  static int32x4_t load_quad(const std::byte* p) {
    return vreinterpretq_s32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
  }
  static uint16x4_t load_4_halves(const std::byte* p) {
    return vreinterpret_u16_u8(vld1_u8(reinterpret_cast<const uint8_t*>(p)));
  }

  static Ints load(const std::byte* p) {
    return each([&](int i) { return load_quad(p + 16 * i); });
  }
  static void store(std::byte* p, Ints a) {
    for (int i = 0; i < 4; ++i) vst1q_u8(reinterpret_cast<uint8_t*>(p + 16 * i), vreinterpretq_u8_s32(a.quad[i]));
  }
  static Ints broadcast(int32_t a) {
    return each([&](int) { return vdupq_n_s32(a); });
  }

  static Ints bit_and(Ints a, Ints b) {
    return each([&](int i) { return vandq_s32(a.quad[i], b.quad[i]); });
  }
  static Ints bit_or(Ints a, Ints b) {
    return each([&](int i) { return vorrq_s32(a.quad[i], b.quad[i]); });
  }
  template <int kBits>
  static Ints shift_left(Ints a) {
    return each([&](int i) { return vshlq_n_s32(a.quad[i], kBits); });
  }
  template <int kBits>
  static Ints shift_right(Ints a) {
    if constexpr (kBits == 0) {
      return a;
    } else {
      return each([&](int i) { return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.quad[i]), kBits)); });
    }
  }
  template <int kBits>
  static Ints shift_right_signed(Ints a) {
    return each([&](int i) { return vshrq_n_s32(a.quad[i], kBits); });
  }
  template <int kFirst>
  static Ints spread_bits(Ints a) {
    constexpr uint8_t k = kFirst / 8;
    const uint8x16_t source = {k,     k,     k,     k,     k + 4,  k + 4,  k + 4,  k + 4,
                               k + 8, k + 8, k + 8, k + 8, k + 12, k + 12, k + 12, k + 12};
    const uint8x16_t bit_of_byte = vreinterpretq_u8_u32(vdupq_n_u32(uint32_t{0x08040201} << kFirst % 8));
    return each([&](int i) {
      const uint8x16_t replicated = vqtbl1q_u8(vreinterpretq_u8_s32(a.quad[i]), source);
      return vreinterpretq_s32_u8(vandq_u8(vtstq_u8(replicated, bit_of_byte), vdupq_n_u8(1)));
    });
  }

  static Ints broadcast4(const int8_t* p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return broadcast(word);
  }
  static Ints dot4(Ints sum, Ints codes, Ints x) { return dot4_signed(sum, codes, x); }
  static Ints bias_signed(Ints numbers) { return numbers; }
  static Ints dot4_signed(Ints sum, Ints numbers, Ints x) {
    return each([&](int i) {
      return vdotq_s32(sum.quad[i], vreinterpretq_s8_s32(numbers.quad[i]), vreinterpretq_s8_s32(x.quad[i]));
    });
  }

  static Floats load_floats(const void* p) {
    const auto* floats = static_cast<const float*>(p);
    return each_float([&](int i) { return vld1q_f32(floats + 4 * i); });
  }
  static void store_floats(float* p, Floats a) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.quad[i]);
  }
  static Floats load_halves(const std::byte* p) {
    return each_float([&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(load_4_halves(p + 8 * i))); });
  }
  static Floats load_bfloat16s(const std::byte* p) {
    return each_float([&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(load_4_halves(p + 8 * i), 16)); });
  }
  static Floats broadcast(float a) {
    return each_float([&](int) { return vdupq_n_f32(a); });
  }
  static Floats to_floats(Ints a) {
    return each_float([&](int i) { return vcvtq_f32_s32(a.quad[i]); });
  }
  static Ints to_ints(Floats a) {
    return each([&](int i) { return vcvtnq_s32_f32(a.quad[i]); });
  }
  static Ints float_bits(Floats a) {
    return each([&](int i) { return vreinterpretq_s32_f32(a.quad[i]); });
  }
  static Ints add(Ints a, Ints b) {
    return each([&](int i) { return vaddq_s32(a.quad[i], b.quad[i]); });
  }
  static Ints multiply(Ints a, Ints b) {
    return each([&](int i) { return vmulq_s32(a.quad[i], b.quad[i]); });
  }
  static Floats add(Floats a, Floats b) {
    return each_float([&](int i) { return vaddq_f32(a.quad[i], b.quad[i]); });
  }
  static Floats multiply(Floats a, Floats b) {
    return each_float([&](int i) { return vmulq_f32(a.quad[i], b.quad[i]); });
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) {
    return each_float([&](int i) { return vfmaq_f32(c.quad[i], a.quad[i], b.quad[i]); });
  }

  static Ints max(Ints a, Ints b) {
    return each([&](int i) { return vmaxq_s32(a.quad[i], b.quad[i]); });
  }
  static int32_t largest(Ints a) {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.quad[0], a.quad[1]), vmaxq_s32(a.quad[2], a.quad[3])));
  }
  static int32_t sum(Ints a) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.quad[0], a.quad[1]), vaddq_s32(a.quad[2], a.quad[3])));
  }
  static uint16x8_t low_halves(int32x4_t a, int32x4_t b) {
    return vcombine_u16(vmovn_u32(vreinterpretq_u32_s32(a)), vmovn_u32(vreinterpretq_u32_s32(b)));
  }
  static void store_low_bytes(int8_t* p, Ints a) {
    const uint8x8_t low = vmovn_u16(low_halves(a.quad[0], a.quad[1]));
    const uint8x8_t high = vmovn_u16(low_halves(a.quad[2], a.quad[3]));
    vst1q_s8(p, vreinterpretq_s8_u8(vcombine_u8(low, high)));
  }
  static void store_low_halves(std::byte* p, Ints a) {
    auto* bytes = reinterpret_cast<uint8_t*>(p);
    vst1q_u8(bytes, vreinterpretq_u8_u16(low_halves(a.quad[0], a.quad[1])));
    vst1q_u8(bytes + 16, vreinterpretq_u8_u16(low_halves(a.quad[2], a.quad[3])));
  }

  static void transpose_4_words(const std::byte* rows, size_t stride, Ints out[4]) {
    for (int q = 0; q < 4; ++q) {
      const std::byte* row = rows + 4 * q * stride;
      const int32x4_t a = load_quad(row), b = load_quad(row + stride);
      const int32x4_t c = load_quad(row + 2 * stride), d = load_quad(row + 3 * stride);
      const int64x2_t ab02 = vreinterpretq_s64_s32(vtrn1q_s32(a, b)), ab13 = vreinterpretq_s64_s32(vtrn2q_s32(a, b));
      const int64x2_t cd02 = vreinterpretq_s64_s32(vtrn1q_s32(c, d)), cd13 = vreinterpretq_s64_s32(vtrn2q_s32(c, d));
      out[0].quad[q] = vreinterpretq_s32_s64(vtrn1q_s64(ab02, cd02));
      out[1].quad[q] = vreinterpretq_s32_s64(vtrn1q_s64(ab13, cd13));
      out[2].quad[q] = vreinterpretq_s32_s64(vtrn2q_s64(ab02, cd02));
      out[3].quad[q] = vreinterpretq_s32_s64(vtrn2q_s64(ab13, cd13));
    }
  }
};

}  // namespace
}  // namespace leanstream::kernels
