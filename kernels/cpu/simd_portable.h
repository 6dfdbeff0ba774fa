#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/abi/half.h"

namespace leanstream::kernels {
namespace {

// What the matrix kernels ask of a SIMD target: 16 lanes of 32 bits, lane i for row i of a panel. Every target gives
// the same bits for every function; this one is plain loops and says what they mean.
struct Portable {
  struct Ints {
    int32_t lane[16];
  };
  struct Floats {
    float lane[16];
  };

  // What bias_signed adds to signed numbers, because the target only has a dot product with unsigned ones.
  static constexpr int kSignedBias = 0;

  template <typename Function>
  static Ints each(Function function) {
    Ints r;
    for (int i = 0; i < 16; ++i) r.lane[i] = static_cast<int32_t>(function(i));
    return r;
  }
  template <typename Function>
  static Floats each_float(Function function) {
    Floats r;
    for (int i = 0; i < 16; ++i) r.lane[i] = function(i);
    return r;
  }
  static uint32_t bits(int32_t a) { return static_cast<uint32_t>(a); }
  static uint16_t half_at(const std::byte* p, int i) {
    uint16_t half;
    std::memcpy(&half, p + 2 * i, sizeof half);
    return half;
  }

  // 64 bytes, of any alignment.
  static Ints load(const std::byte* p) {
    Ints r;
    std::memcpy(r.lane, p, sizeof r.lane);
    return r;
  }
  static void store(std::byte* p, const Ints& a) { std::memcpy(p, a.lane, sizeof a.lane); }
  static Ints broadcast(int32_t a) {
    return each([&](int) { return a; });
  }

  static Ints bit_and(const Ints& a, const Ints& b) {
    return each([&](int i) { return a.lane[i] & b.lane[i]; });
  }
  static Ints bit_or(const Ints& a, const Ints& b) {
    return each([&](int i) { return a.lane[i] | b.lane[i]; });
  }
  template <int kBits>
  static Ints shift_left(const Ints& a) {
    return each([&](int i) { return bits(a.lane[i]) << kBits; });
  }
  template <int kBits>
  static Ints shift_right(const Ints& a) {
    return each([&](int i) { return bits(a.lane[i]) >> kBits; });
  }
  template <int kBits>
  static Ints shift_right_signed(const Ints& a) {
    return each([&](int i) { return a.lane[i] >> kBits; });
  }
  // Byte b of each lane = bit kFirst + b of the lane. kFirst is a multiple of 4.
  template <int kFirst>
  static Ints spread_bits(const Ints& a) {
    return each([&](int i) {
      const uint32_t four = bits(a.lane[i]) >> kFirst & 15u;
      return (four & 1u) | (four & 2u) << 7 | (four & 4u) << 14 | (four & 8u) << 21;
    });
  }

  // The same four signed bytes in every lane.
  static Ints broadcast4(const int8_t* p) {
    int32_t word;
    std::memcpy(&word, p, sizeof word);
    return broadcast(word);
  }
  // sum + the dot product of each lane's four bytes. Codes are 0..63, x is -127..127.
  static Ints dot4(const Ints& sum, const Ints& codes, const Ints& x) { return dot4_signed(sum, codes, x); }
  // The same for signed numbers that bias_signed has made ready; the result has kSignedBias * (sum of x) too much.
  static Ints bias_signed(const Ints& numbers) { return numbers; }
  static Ints dot4_signed(const Ints& sum, const Ints& biased, const Ints& x) {
    return each([&](int i) {
      int32_t total = sum.lane[i];
      for (int b = 0; b < 32; b += 8) {
        total += static_cast<int8_t>(bits(biased.lane[i]) >> b) * static_cast<int8_t>(bits(x.lane[i]) >> b);
      }
      return total;
    });
  }

  static Floats load_floats(const void* p) {
    Floats r;
    std::memcpy(r.lane, p, sizeof r.lane);
    return r;
  }
  static void store_floats(float* p, const Floats& a) { std::memcpy(p, a.lane, sizeof a.lane); }
  // 32 bytes: 16 IEEE halves, or bfloat16s.
  static Floats load_halves(const std::byte* p) {
    return each_float([&](int i) { return half_to_float(half_at(p, i)); });
  }
  static Floats load_bfloat16s(const std::byte* p) {
    return each_float([&](int i) { return bfloat16_to_float(half_at(p, i)); });
  }
  static Floats broadcast(float a) {
    return each_float([&](int) { return a; });
  }
  static Floats to_floats(const Ints& a) {
    return each_float([&](int i) { return static_cast<float>(a.lane[i]); });
  }
  // To the nearest, ties to even.
  static Ints to_ints(const Floats& a) {
    return each([&](int i) { return std::lrintf(a.lane[i]); });
  }
  static Ints float_bits(const Floats& a) { return std::bit_cast<Ints>(a); }
  static Ints add(const Ints& a, const Ints& b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Ints multiply(const Ints& a, const Ints& b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static Floats add(const Floats& a, const Floats& b) {
    return each_float([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Floats multiply(const Floats& a, const Floats& b) {
    return each_float([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  // a * b + c, rounded once.
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return each_float([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }

  static Ints max(const Ints& a, const Ints& b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static int32_t largest(const Ints& a) {
    int32_t r = a.lane[0];
    for (int i = 1; i < 16; ++i) r = a.lane[i] > r ? a.lane[i] : r;
    return r;
  }
  static int32_t sum(const Ints& a) {
    int32_t r = 0;
    for (int i = 0; i < 16; ++i) r += a.lane[i];
    return r;
  }
  // The low byte, or the low two, of every lane: 16 or 32 bytes.
  static void store_low_bytes(int8_t* p, const Ints& a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.lane[i]);
  }
  static void store_low_halves(std::byte* p, const Ints& a) {
    for (int i = 0; i < 16; ++i) std::memcpy(p + 2 * i, &a.lane[i], 2);
  }

  // Lane i of out[t] = word t of row i, the rows being `stride` bytes apart.
  static void transpose_4_words(const std::byte* rows, size_t stride, Ints out[4]) {
    for (int i = 0; i < 16; ++i) {
      for (int t = 0; t < 4; ++t) std::memcpy(&out[t].lane[i], rows + i * stride + 4 * t, 4);
    }
  }
};

}  // namespace
}  // namespace leanstream::kernels
