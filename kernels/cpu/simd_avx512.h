#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace leanstream::kernels {
namespace {

// 16 lanes of 32 bits in one register. simd_portable.h says what each function means.
struct Avx512 {
  using Ints = __m512i;
  using Floats = __m512;

  static constexpr int kSignedBias = 128;

  static Ints load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static void store(std::byte* p, Ints a) { _mm512_storeu_si512(p, a); }
  static Ints broadcast(int32_t a) { return _mm512_set1_epi32(a); }

  static Ints bit_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints bit_or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  template <int kBits>
  static Ints shift_left(Ints a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static Ints shift_right(Ints a) {
    return _mm512_srli_epi32(a, kBits);
  }
  template <int kBits>
  static Ints shift_right_signed(Ints a) {
    return _mm512_srai_epi32(a, kBits);
  }
  template <int kFirst>
  static Ints spread_bits(Ints a) {
    const Ints source = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0x00000000);
    const Ints replicated = _mm512_shuffle_epi8(a, _mm512_add_epi8(source, _mm512_set1_epi8(kFirst / 8)));
    const Ints bit_of_byte = broadcast(0x08040201 << kFirst % 8);
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(replicated, bit_of_byte), _mm512_set1_epi8(1));
  }

  static Ints broadcast4(const int8_t* p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
  }
  static Ints dot4(Ints sum, Ints codes, Ints x) { return _mm512_dpbusd_epi32(sum, codes, x); }
  static Ints bias_signed(Ints numbers) { return _mm512_xor_si512(numbers, _mm512_set1_epi8(-128)); }
  static Ints dot4_signed(Ints sum, Ints biased, Ints x) { return _mm512_dpbusd_epi32(sum, biased, x); }

  static Floats load_floats(const void* p) { return _mm512_loadu_ps(p); }
  static void store_floats(float* p, Floats a) { _mm512_storeu_ps(p, a); }
  static Floats load_halves(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats load_bfloat16s(const std::byte* p) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
  }
  static Floats broadcast(float a) { return _mm512_set1_ps(a); }
  static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Ints to_ints(Floats a) { return _mm512_cvtps_epi32(a); }
  static Ints float_bits(Floats a) { return _mm512_castps_si512(a); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints multiply(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

  static Ints max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static int32_t largest(Ints a) { return _mm512_reduce_max_epi32(a); }
  static int32_t sum(Ints a) { return _mm512_reduce_add_epi32(a); }
  static void store_low_bytes(int8_t* p, Ints a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  static void store_low_halves(std::byte* p, Ints a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
  }

  static void transpose_4_words(const std::byte* rows, size_t stride, Ints out[4]) {
    // 128-bit lane i of z[k]: four words of row 4 i + k.
    Ints z[4];
    for (int k = 0; k < 4; ++k) {
      const auto row = [&](int i) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + (4 * i + k) * stride));
      };
      z[k] = _mm512_castsi128_si512(row(0));
      z[k] = _mm512_inserti32x4(z[k], row(1), 1);
      z[k] = _mm512_inserti32x4(z[k], row(2), 2);
      z[k] = _mm512_inserti32x4(z[k], row(3), 3);
    }
    const Ints low01 = _mm512_unpacklo_epi32(z[0], z[1]), high01 = _mm512_unpackhi_epi32(z[0], z[1]);
    const Ints low23 = _mm512_unpacklo_epi32(z[2], z[3]), high23 = _mm512_unpackhi_epi32(z[2], z[3]);
    out[0] = _mm512_unpacklo_epi64(low01, low23);
    out[1] = _mm512_unpackhi_epi64(low01, low23);
    out[2] = _mm512_unpacklo_epi64(high01, high23);
    out[3] = _mm512_unpackhi_epi64(high01, high23);
  }
};

}  // namespace
}  // namespace leanstream::kernels
