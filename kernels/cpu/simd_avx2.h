#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace leanstream::kernels {
namespace {

// 16 lanes of 32 bits in two registers. simd_portable.h says what each function means.
struct Avx2 {
  struct Ints {
    __m256i half[2];
  };
  struct Floats {
    __m256 half[2];
  };

  static constexpr int kSignedBias = 0;

  template <typename Function>
  static Ints each(Function function) {
    return {{function(0), function(1)}};
  }
  template <typename Function>
  static Floats each_float(Function function) {
    return {{function(0), function(1)}};
  }
  static __m256i load_half(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

  static Ints load(const std::byte* p) { return {{load_half(p), load_half(p + 32)}}; }
  static void store(std::byte* p, Ints a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.half[0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.half[1]);
  }
  static Ints broadcast(int32_t a) { return {{_mm256_set1_epi32(a), _mm256_set1_epi32(a)}}; }

  static Ints bit_and(Ints a, Ints b) {
    return each([&](int i) { return _mm256_and_si256(a.half[i], b.half[i]); });
  }
  static Ints bit_or(Ints a, Ints b) {
    return each([&](int i) { return _mm256_or_si256(a.half[i], b.half[i]); });
  }
  template <int kBits>
  static Ints shift_left(Ints a) {
    return each([&](int i) { return _mm256_slli_epi32(a.half[i], kBits); });
  }
  template <int kBits>
  static Ints shift_right(Ints a) {
    return each([&](int i) { return _mm256_srli_epi32(a.half[i], kBits); });
  }
  template <int kBits>
  static Ints shift_right_signed(Ints a) {
    return each([&](int i) { return _mm256_srai_epi32(a.half[i], kBits); });
  }
  template <int kFirst>
  static Ints spread_bits(Ints a) {
    const __m256i source = _mm256_add_epi8(_mm256_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0x00000000, 0x0c0c0c0c,
                                                            0x08080808, 0x04040404, 0x00000000),
                                           _mm256_set1_epi8(kFirst / 8));
    const __m256i bit_of_byte = _mm256_set1_epi32(0x08040201 << kFirst % 8);
    return each([&](int i) {
      const __m256i bit = _mm256_and_si256(_mm256_shuffle_epi8(a.half[i], source), bit_of_byte);
      return _mm256_and_si256(_mm256_cmpeq_epi8(bit, bit_of_byte), _mm256_set1_epi8(1));
    });
  }

  static Ints broadcast4(const int8_t* p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return broadcast(word);
  }
  // Pairs of products stay below 2 * 63 * 127, so the saturating addition does not saturate.
  static Ints dot4(Ints sum, Ints codes, Ints x) {
    return each([&](int i) {
      const __m256i products = _mm256_maddubs_epi16(codes.half[i], x.half[i]);
      return _mm256_add_epi32(sum.half[i], _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
    });
  }
  // |w| * (x with w's sign): at most 2 * 128 * 127 a pair, which fits.
  static Ints bias_signed(Ints numbers) { return numbers; }
  static Ints dot4_signed(Ints sum, Ints numbers, Ints x) {
    return dot4(sum, each([&](int i) { return _mm256_abs_epi8(numbers.half[i]); }),
                each([&](int i) { return _mm256_sign_epi8(x.half[i], numbers.half[i]); }));
  }

  static Floats load_floats(const void* p) {
    const auto* floats = static_cast<const float*>(p);
    return {{_mm256_loadu_ps(floats), _mm256_loadu_ps(floats + 8)}};
  }
  static void store_floats(float* p, Floats a) {
    _mm256_storeu_ps(p, a.half[0]);
    _mm256_storeu_ps(p + 8, a.half[1]);
  }
  static __m128i load_8_halves(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static Floats load_halves(const std::byte* p) {
    return each_float([&](int i) { return _mm256_cvtph_ps(load_8_halves(p + 16 * i)); });
  }
  static Floats load_bfloat16s(const std::byte* p) {
    return each_float([&](int i) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_8_halves(p + 16 * i)), 16));
    });
  }
  static Floats broadcast(float a) { return {{_mm256_set1_ps(a), _mm256_set1_ps(a)}}; }
  static Floats to_floats(Ints a) {
    return each_float([&](int i) { return _mm256_cvtepi32_ps(a.half[i]); });
  }
  static Ints to_ints(Floats a) {
    return each([&](int i) { return _mm256_cvtps_epi32(a.half[i]); });
  }
  static Ints float_bits(Floats a) {
    return each([&](int i) { return _mm256_castps_si256(a.half[i]); });
  }
  static Ints add(Ints a, Ints b) {
    return each([&](int i) { return _mm256_add_epi32(a.half[i], b.half[i]); });
  }
  static Ints multiply(Ints a, Ints b) {
    return each([&](int i) { return _mm256_mullo_epi32(a.half[i], b.half[i]); });
  }
  static Floats add(Floats a, Floats b) {
    return each_float([&](int i) { return _mm256_add_ps(a.half[i], b.half[i]); });
  }
  static Floats multiply(Floats a, Floats b) {
    return each_float([&](int i) { return _mm256_mul_ps(a.half[i], b.half[i]); });
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) {
    return each_float([&](int i) { return _mm256_fmadd_ps(a.half[i], b.half[i], c.half[i]); });
  }

  static Ints max(Ints a, Ints b) {
    return each([&](int i) { return _mm256_max_epi32(a.half[i], b.half[i]); });
  }
  static int32_t largest(Ints a) {
    __m256i eight = _mm256_max_epi32(a.half[0], a.half[1]);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtsi128_si32(four);
  }
  static int32_t sum(Ints a) {
    __m256i eight = _mm256_add_epi32(a.half[0], a.half[1]);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtsi128_si32(four);
  }
  static void store_low_bytes(int8_t* p, Ints a) {
    const __m256i low = _mm256_set1_epi32(0xff);
    // 16-bit lanes come out as 0-3 8-11 4-7 12-15; the byte pack doubles them and the last permutation sorts them.
    const __m256i halves = _mm256_packus_epi32(_mm256_and_si256(a.half[0], low), _mm256_and_si256(a.half[1], low));
    const __m256i sorted = _mm256_permute4x64_epi64(halves, 0xd8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(sorted), _mm256_extracti128_si256(sorted, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  static void store_low_halves(std::byte* p, Ints a) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    const __m256i halves = _mm256_packus_epi32(_mm256_and_si256(a.half[0], low), _mm256_and_si256(a.half[1], low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(halves, 0xd8));
  }

  static void transpose_4_words(const std::byte* rows, size_t stride, Ints out[4]) {
    for (int h = 0; h < 2; ++h) {
      // 128-bit lane i of y[k]: four words of row 8 h + 4 i + k.
      __m256i y[4];
      for (int k = 0; k < 4; ++k) {
        const std::byte* row = rows + (8 * h + k) * stride;
        y[k] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_8_halves(row)), load_8_halves(row + 4 * stride), 1);
      }
      const __m256i low01 = _mm256_unpacklo_epi32(y[0], y[1]), high01 = _mm256_unpackhi_epi32(y[0], y[1]);
      const __m256i low23 = _mm256_unpacklo_epi32(y[2], y[3]), high23 = _mm256_unpackhi_epi32(y[2], y[3]);
      out[0].half[h] = _mm256_unpacklo_epi64(low01, low23);
      out[1].half[h] = _mm256_unpackhi_epi64(low01, low23);
      out[2].half[h] = _mm256_unpacklo_epi64(high01, high23);
      out[3].half[h] = _mm256_unpackhi_epi64(high01, high23);
    }
  }
};

}  // namespace
}  // namespace leanstream::kernels
