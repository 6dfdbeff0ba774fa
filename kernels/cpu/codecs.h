#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/abi/matrix.h"

namespace leanstream::kernels {
namespace {

// How a panel's blocks become numbers, lane by lane. Every quantised type is the same to the matrix kernels:
//
//   element = scale[group] * (code - kOffset) - offset[group]
//
// in slices of 32 elements; a group is 16 or 32. A slice's codes are eight vectors: byte b of lane r of vector t is the
// code of element 4 t + b in row r. docs/kernels.md draws the panels that this file reads.

// In a file's block: `lead` halves, `words` of 4 bytes, `trail` halves. A panel's block holds the same fields, each of
// 16 rows side by side.
struct BlockShape {
  uint32_t lead;
  uint32_t words;
  uint32_t trail;
};

constexpr BlockShape block_shape(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return {0, 1, 0};
    case WeightType::kF16:
    case WeightType::kBF16:
      return {1, 0, 0};
    case WeightType::kQ4_0:
      return {1, 4, 0};
    case WeightType::kQ4_1:
      return {2, 4, 0};
    case WeightType::kQ5_0:
      return {1, 5, 0};
    case WeightType::kQ5_1:
      return {2, 5, 0};
    case WeightType::kQ8_0:
      return {1, 8, 0};
    case WeightType::kQ2_K:
      return {0, 20, 2};
    case WeightType::kQ3_K:
      return {0, 27, 1};
    case WeightType::kQ4_K:
      return {2, 35, 0};
    case WeightType::kQ5_K:
      return {2, 43, 0};
    case WeightType::kQ6_K:
      return {0, 52, 1};
  }
  return {};
}

// What a codec says beside its two functions.
template <WeightType kWeightType, int kGroupElements, int kCodeOffset, bool kWithOffsets>
struct CodecTraits {
  static constexpr WeightType kType = kWeightType;
  static constexpr BlockShape kShape = block_shape(kWeightType);
  static constexpr int kSlices = static_cast<int>(traits(kWeightType).block_elements) / 32;  // of a block
  static constexpr int kGroupsPerSlice = 32 / kGroupElements;
  static constexpr int kGroups = kSlices * kGroupsPerSlice;  // of a block
  static constexpr int kOffset = kCodeOffset;
  static constexpr bool kHasOffsets = kWithOffsets;
  static constexpr bool kSigned = false;  // codes are 0..63, not int8
  static constexpr size_t kPanelBlockBytes = kPanelRows * traits(kWeightType).block_bytes;

  static const std::byte* half(const std::byte* block, int i) { return block + 32 * i; }
  static const std::byte* word(const std::byte* block, int i) { return block + 32 * kShape.lead + 64 * i; }
  static const std::byte* trailing_half(const std::byte* block, int i) { return word(block, kShape.words) + 32 * i; }
};

// Byte kByte of every lane.
template <typename S, int kByte>
typename S::Ints byte_of(typename S::Ints a) {
  if constexpr (kByte == 3) return S::template shift_right<24>(a);
  return S::bit_and(S::template shift_right<8 * kByte>(a), S::broadcast(0xff));
}

template <typename S, int kByte>
typename S::Ints signed_byte_of(typename S::Ints a) {
  return S::template shift_right_signed<24>(S::template shift_left<24 - 8 * kByte>(a));
}

// out[0..3] = factor * each byte of `bytes`, less kBias.
template <typename S, int kBias = 0>
void scale_bytes(typename S::Floats factor, typename S::Ints bytes, typename S::Floats* out) {
  const auto scaled = [&](typename S::Ints byte) {
    if constexpr (kBias == 0) return S::multiply(factor, S::to_floats(byte));
    return S::multiply(factor, S::to_floats(S::add(byte, S::broadcast(-kBias))));
  };
  out[0] = scaled(byte_of<S, 0>(bytes));
  out[1] = scaled(byte_of<S, 1>(bytes));
  out[2] = scaled(byte_of<S, 2>(bytes));
  out[3] = scaled(byte_of<S, 3>(bytes));
}

template <typename S, int kShift>
typename S::Ints nibbles(typename S::Ints a) {
  return S::bit_and(S::template shift_right<kShift>(a), S::broadcast(0x0f0f0f0f));
}
template <typename S, int kShift>
typename S::Ints pairs(typename S::Ints a) {
  return S::bit_and(S::template shift_right<kShift>(a), S::broadcast(0x03030303));
}
template <typename S, int kShift>
typename S::Ints single_bits(typename S::Ints a) {
  return S::bit_and(S::template shift_right<kShift>(a), S::broadcast(0x01010101));
}

template <typename S, WeightType kType>
struct Codec;

// Blocks of 32: one scale, perhaps one offset -----------------------------------------------------------------------

// Words kFirst .. kFirst + 3 hold elements 0..15 in their low nibbles and 16..31 in the high ones.
template <typename S, typename Traits, int kFirst>
void nibbles_of_32(const std::byte* block, typename S::Ints codes[8]) {
  for (int t = 0; t < 4; ++t) {
    const auto word = S::load(Traits::word(block, kFirst + t));
    codes[t] = nibbles<S, 0>(word);
    codes[4 + t] = nibbles<S, 4>(word);
  }
}

// Word 0 holds the fifth bit of each element.
template <typename S, typename Traits>
void fifth_bits_of_32(const std::byte* block, typename S::Ints codes[8]) {
  const auto bits = S::load(Traits::word(block, 0));
  const auto add = [&](typename S::Ints& code, typename S::Ints bit) {
    code = S::bit_or(code, S::template shift_left<4>(bit));
  };
  add(codes[0], S::template spread_bits<0>(bits));
  add(codes[1], S::template spread_bits<4>(bits));
  add(codes[2], S::template spread_bits<8>(bits));
  add(codes[3], S::template spread_bits<12>(bits));
  add(codes[4], S::template spread_bits<16>(bits));
  add(codes[5], S::template spread_bits<20>(bits));
  add(codes[6], S::template spread_bits<24>(bits));
  add(codes[7], S::template spread_bits<28>(bits));
}

// The offset is stored as what is added.
template <typename S, typename Traits>
void scale_and_offset(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
  scale[0] = S::load_halves(Traits::half(block, 0));
  if constexpr (Traits::kHasOffsets) {
    offset[0] = S::multiply(S::load_halves(Traits::half(block, 1)), S::broadcast(-1.0f));
  }
}

template <typename S, typename Traits>
struct NibbleCodec : Traits {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    nibbles_of_32<S, Traits, 0>(block, out);
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
    scale_and_offset<S, Traits>(block, scale, offset);
  }
};
template <typename S>
struct Codec<S, WeightType::kQ4_0> : NibbleCodec<S, CodecTraits<WeightType::kQ4_0, 32, 8, false>> {};
template <typename S>
struct Codec<S, WeightType::kQ4_1> : NibbleCodec<S, CodecTraits<WeightType::kQ4_1, 32, 0, true>> {};

template <typename S, typename Traits>
struct FiveBitCodec : Traits {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    nibbles_of_32<S, Traits, 1>(block, out);
    fifth_bits_of_32<S, Traits>(block, out);
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
    scale_and_offset<S, Traits>(block, scale, offset);
  }
};
template <typename S>
struct Codec<S, WeightType::kQ5_0> : FiveBitCodec<S, CodecTraits<WeightType::kQ5_0, 32, 16, false>> {};
template <typename S>
struct Codec<S, WeightType::kQ5_1> : FiveBitCodec<S, CodecTraits<WeightType::kQ5_1, 32, 0, true>> {};

template <typename S>
struct Codec<S, WeightType::kQ8_0> : CodecTraits<WeightType::kQ8_0, 32, 0, false> {
  static constexpr bool kSigned = true;

  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    for (int t = 0; t < 8; ++t) out[t] = S::load(Codec::word(block, t));
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats*) {
    scale[0] = S::load_halves(Codec::half(block, 0));
  }
};

// Blocks of 256: small integer scales per group, times one factor ---------------------------------------------------

// Words 0-3: a scale (low nibble) and an offset (high nibble) per group; words 4-19: bit pairs.
template <typename S>
struct Codec<S, WeightType::kQ2_K> : CodecTraits<WeightType::kQ2_K, 16, 0, true> {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    for (int t = 0; t < 8; ++t) out[t] = pairs<S, kSlice % 4 * 2>(S::load(Codec::word(block, 4 + kSlice / 4 * 8 + t)));
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
    const auto d = S::load_halves(Codec::trailing_half(block, 0));
    const auto dmin = S::load_halves(Codec::trailing_half(block, 1));
    for (int i = 0; i < 4; ++i) {
      const auto both = S::load(Codec::word(block, i));
      scale_bytes<S>(d, nibbles<S, 0>(both), scale + 4 * i);
      scale_bytes<S>(dmin, nibbles<S, 4>(both), offset + 4 * i);
    }
  }
};

// Words 0-7: the third bits; words 8-23: bit pairs; words 24-26: 16 scales of 6 bits, biased by 32: low nibbles in
// words 24 and 25, top pairs in word 26.
template <typename S>
struct Codec<S, WeightType::kQ3_K> : CodecTraits<WeightType::kQ3_K, 16, 4, false> {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    for (int t = 0; t < 8; ++t) {
      const auto low = pairs<S, kSlice % 4 * 2>(S::load(Codec::word(block, 8 + kSlice / 4 * 8 + t)));
      const auto high = single_bits<S, kSlice>(S::load(Codec::word(block, t)));
      out[t] = S::bit_or(low, S::template shift_left<2>(high));
    }
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats*) {
    const auto d = S::load_halves(Codec::trailing_half(block, 0));
    const auto low = S::load(Codec::word(block, 24));
    const auto high = S::load(Codec::word(block, 25));
    const auto top = S::load(Codec::word(block, 26));
    const auto six_bits = [](typename S::Ints nibble, typename S::Ints pair) {
      return S::bit_or(nibble, S::template shift_left<4>(pair));
    };
    scale_bytes<S, 32>(d, six_bits(nibbles<S, 0>(low), pairs<S, 0>(top)), scale);
    scale_bytes<S, 32>(d, six_bits(nibbles<S, 0>(high), pairs<S, 2>(top)), scale + 4);
    scale_bytes<S, 32>(d, six_bits(nibbles<S, 4>(low), pairs<S, 4>(top)), scale + 8);
    scale_bytes<S, 32>(d, six_bits(nibbles<S, 4>(high), pairs<S, 6>(top)), scale + 12);
  }
};

// Words 0-2 of Q4_K and Q5_K: 8 scales and 8 offsets of 6 bits. The first four of each stand whole in words 0 and 1,
// whose top pairs are the top pairs of the last four; the low nibbles of those share word 2.
template <typename S, typename Traits>
void six_bit_scales_and_offsets(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
  const auto d = S::load_halves(Traits::half(block, 0));
  const auto dmin = S::load_halves(Traits::half(block, 1));
  const auto first_scales = S::load(Traits::word(block, 0));
  const auto first_offsets = S::load(Traits::word(block, 1));
  const auto last = S::load(Traits::word(block, 2));
  const auto six = S::broadcast(0x3f3f3f3f);
  const auto top = S::broadcast(0x30303030);
  const auto last_of = [&](typename S::Ints nibble, typename S::Ints first) {
    return S::bit_or(nibble, S::bit_and(S::template shift_right<2>(first), top));
  };
  scale_bytes<S>(d, S::bit_and(first_scales, six), scale);
  scale_bytes<S>(d, last_of(nibbles<S, 0>(last), first_scales), scale + 4);
  scale_bytes<S>(dmin, S::bit_and(first_offsets, six), offset);
  scale_bytes<S>(dmin, last_of(nibbles<S, 4>(last), first_offsets), offset + 4);
}

// Words 3-34: nibbles; 8 words serve two slices.
template <typename S>
struct Codec<S, WeightType::kQ4_K> : CodecTraits<WeightType::kQ4_K, 32, 0, true> {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    for (int t = 0; t < 8; ++t) {
      out[t] = nibbles<S, kSlice % 2 * 4>(S::load(Codec::word(block, 3 + kSlice / 2 * 8 + t)));
    }
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
    six_bit_scales_and_offsets<S, Codec>(block, scale, offset);
  }
};

// Words 3-10: the fifth bits, bit i of each byte for slice i; words 11-42: nibbles as in Q4_K.
template <typename S>
struct Codec<S, WeightType::kQ5_K> : CodecTraits<WeightType::kQ5_K, 32, 0, true> {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    for (int t = 0; t < 8; ++t) {
      const auto low = nibbles<S, kSlice % 2 * 4>(S::load(Codec::word(block, 11 + kSlice / 2 * 8 + t)));
      const auto high = single_bits<S, kSlice>(S::load(Codec::word(block, 3 + t)));
      out[t] = S::bit_or(low, S::template shift_left<4>(high));
    }
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats* offset) {
    six_bit_scales_and_offsets<S, Codec>(block, scale, offset);
  }
};

// Words 0-31: nibbles, 16 words for four slices; words 32-47: the top pairs, 8 words for four slices; words 48-51: int8
// scales.
template <typename S>
struct Codec<S, WeightType::kQ6_K> : CodecTraits<WeightType::kQ6_K, 16, 32, false> {
  template <int kSlice>
  static void codes(const std::byte* block, typename S::Ints out[8]) {
    constexpr int kHalf = kSlice / 4, kQuarter = kSlice % 4;
    for (int t = 0; t < 8; ++t) {
      const auto low = nibbles<S, kQuarter / 2 * 4>(S::load(Codec::word(block, 16 * kHalf + kQuarter % 2 * 8 + t)));
      const auto high = pairs<S, 2 * kQuarter>(S::load(Codec::word(block, 32 + 8 * kHalf + t)));
      out[t] = S::bit_or(low, S::template shift_left<4>(high));
    }
  }
  static void scales(const std::byte* block, typename S::Floats* scale, typename S::Floats*) {
    const auto d = S::load_halves(Codec::trailing_half(block, 0));
    for (int i = 0; i < 4; ++i) {
      const auto bytes = S::load(Codec::word(block, 48 + i));
      scale[4 * i] = S::multiply(d, S::to_floats(signed_byte_of<S, 0>(bytes)));
      scale[4 * i + 1] = S::multiply(d, S::to_floats(signed_byte_of<S, 1>(bytes)));
      scale[4 * i + 2] = S::multiply(d, S::to_floats(signed_byte_of<S, 2>(bytes)));
      scale[4 * i + 3] = S::multiply(d, S::to_floats(signed_byte_of<S, 3>(bytes)));
    }
  }
};

}  // namespace
}  // namespace leanstream::kernels
