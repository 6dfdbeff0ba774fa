#include "kernels/reference/blocks.h"

#include <cstring>

#include "kernels/abi/half.h"

namespace leanstream::reference {
namespace {

// Each layout below is written once and run in both directions: a codec moves fields between bytes and numbers.
// `field` moves `width` bits at `shift` of a byte from or to the bits at `at` of a number, which starts as zero.
struct Unpack {
  static void field(std::byte& byte, int shift, int width, int8_t& number, int at = 0) {
    const int bits = std::to_integer<int>(byte) >> shift & ((1 << width) - 1);
    number = static_cast<int8_t>(number | bits << at);
  }
  static void half(std::byte* bytes, float& number) {
    uint16_t bits;
    std::memcpy(&bits, bytes, sizeof bits);
    number = half_to_float(bits);
  }
};

struct Pack {
  static void field(std::byte& byte, int shift, int width, const int8_t& number, int at = 0) {
    const int bits = static_cast<uint8_t>(number) >> at & ((1 << width) - 1);
    byte |= static_cast<std::byte>(bits << shift);
  }
  static void half(std::byte* bytes, const float& number) {
    const uint16_t bits = float_to_half(number);
    std::memcpy(bytes, &bits, sizeof bits);
  }
};

// 16 bytes: element j in the low, element j + 16 in the high half of byte j.
template <typename Codec, typename Numbers>
void nibbles_of_32(std::byte* bytes, Numbers& block) {
  for (int j = 0; j < 16; ++j) {
    Codec::field(bytes[j], 0, 4, block.q[j]);
    Codec::field(bytes[j], 4, 4, block.q[j + 16]);
  }
}

// 4 bytes: bit j of a little-endian word is bit 4 of element j.
template <typename Codec, typename Numbers>
void fifth_bits_of_32(std::byte* bytes, Numbers& block) {
  for (int j = 0; j < 32; ++j) Codec::field(bytes[j / 8], j % 8, 1, block.q[j], 4);
}

template <typename Codec, typename Numbers>
void q4_0(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  nibbles_of_32<Codec>(bytes + 2, block);
}

template <typename Codec, typename Numbers>
void q4_1(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  Codec::half(bytes + 2, block.dmin);
  nibbles_of_32<Codec>(bytes + 4, block);
}

template <typename Codec, typename Numbers>
void q5_0(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  fifth_bits_of_32<Codec>(bytes + 2, block);
  nibbles_of_32<Codec>(bytes + 6, block);
}

template <typename Codec, typename Numbers>
void q5_1(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  Codec::half(bytes + 2, block.dmin);
  fifth_bits_of_32<Codec>(bytes + 4, block);
  nibbles_of_32<Codec>(bytes + 8, block);
}

template <typename Codec, typename Numbers>
void q8_0(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  for (int j = 0; j < 32; ++j) Codec::field(bytes[2 + j], 0, 8, block.q[j]);
}

// 64 bytes: two halves of 128 elements; pair s of byte l of a half is element 32 s + l.
template <typename Codec, typename Numbers>
void pairs_of_256(std::byte* bytes, Numbers& block, int at) {
  for (int i = 0; i < 256; ++i) {
    Codec::field(bytes[i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2, block.q[i], at);
  }
}

// 32 bytes: bit s of byte l is bit `at` of element 32 s + l.
template <typename Codec, typename Numbers>
void single_bits_of_256(std::byte* bytes, Numbers& block, int at) {
  for (int i = 0; i < 256; ++i) Codec::field(bytes[i % 32], i / 32, 1, block.q[i], at);
}

// 128 bytes: `run` elements in the low halves of as many bytes, the next `run` in their high halves, and so on.
template <typename Codec, typename Numbers>
void nibbles_of_256(std::byte* bytes, Numbers& block, int run) {
  for (int i = 0; i < 256; ++i) {
    Codec::field(bytes[i / (2 * run) * run + i % run], i % (2 * run) / run * 4, 4, block.q[i]);
  }
}

// 12 bytes: 8 scales and 8 mins of 6 bits. The first four of each stand whole in bytes 0-3 and 4-7, whose top pairs are
// the top pairs of the last four; their lower halves share bytes 8-11.
template <typename Codec, typename Numbers>
void six_bit_scales_and_mins(std::byte* bytes, Numbers& block) {
  for (int j = 0; j < 4; ++j) {
    Codec::field(bytes[j], 0, 6, block.scale[j]);
    Codec::field(bytes[j], 6, 2, block.scale[j + 4], 4);
    Codec::field(bytes[j + 4], 0, 6, block.min[j]);
    Codec::field(bytes[j + 4], 6, 2, block.min[j + 4], 4);
    Codec::field(bytes[j + 8], 0, 4, block.scale[j + 4]);
    Codec::field(bytes[j + 8], 4, 4, block.min[j + 4]);
  }
}

template <typename Codec, typename Numbers>
void q2_k(std::byte* bytes, Numbers& block) {
  for (int g = 0; g < 16; ++g) {
    Codec::field(bytes[g], 0, 4, block.scale[g]);
    Codec::field(bytes[g], 4, 4, block.min[g]);
  }
  pairs_of_256<Codec>(bytes + 16, block, 0);
  Codec::half(bytes + 80, block.d);
  Codec::half(bytes + 82, block.dmin);
}

template <typename Codec, typename Numbers>
void q3_k(std::byte* bytes, Numbers& block) {
  single_bits_of_256<Codec>(bytes, block, 2);
  pairs_of_256<Codec>(bytes + 32, block, 0);
  for (int g = 0; g < 16; ++g) {  // low halves in bytes 96-103, top pairs in bytes 104-107
    Codec::field(bytes[96 + g % 8], g / 8 * 4, 4, block.scale[g]);
    Codec::field(bytes[104 + g % 4], g / 4 * 2, 2, block.scale[g], 4);
  }
  Codec::half(bytes + 108, block.d);
}

template <typename Codec, typename Numbers>
void q4_k(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  Codec::half(bytes + 2, block.dmin);
  six_bit_scales_and_mins<Codec>(bytes + 4, block);
  nibbles_of_256<Codec>(bytes + 16, block, 32);
}

template <typename Codec, typename Numbers>
void q5_k(std::byte* bytes, Numbers& block) {
  Codec::half(bytes, block.d);
  Codec::half(bytes + 2, block.dmin);
  six_bit_scales_and_mins<Codec>(bytes + 4, block);
  single_bits_of_256<Codec>(bytes + 16, block, 4);
  nibbles_of_256<Codec>(bytes + 48, block, 32);
}

template <typename Codec, typename Numbers>
void q6_k(std::byte* bytes, Numbers& block) {
  nibbles_of_256<Codec>(bytes, block, 64);
  pairs_of_256<Codec>(bytes + 128, block, 4);
  for (int g = 0; g < 16; ++g) Codec::field(bytes[192 + g], 0, 8, block.scale[g]);
  Codec::half(bytes + 208, block.d);
}

template <typename Codec, typename Numbers>
void run_layout(WeightType type, std::byte* bytes, Numbers& block) {
  switch (type) {
    case WeightType::kQ4_0:
      return q4_0<Codec>(bytes, block);
    case WeightType::kQ4_1:
      return q4_1<Codec>(bytes, block);
    case WeightType::kQ5_0:
      return q5_0<Codec>(bytes, block);
    case WeightType::kQ5_1:
      return q5_1<Codec>(bytes, block);
    case WeightType::kQ8_0:
      return q8_0<Codec>(bytes, block);
    case WeightType::kQ2_K:
      return q2_k<Codec>(bytes, block);
    case WeightType::kQ3_K:
      return q3_k<Codec>(bytes, block);
    case WeightType::kQ4_K:
      return q4_k<Codec>(bytes, block);
    case WeightType::kQ5_K:
      return q5_k<Codec>(bytes, block);
    case WeightType::kQ6_K:
      return q6_k<Codec>(bytes, block);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return;  // no blocks
  }
}

// What the file adds to signed numbers to store them unsigned.
int bias_of_q(WeightType type) {
  switch (type) {
    case WeightType::kQ3_K:
      return 4;
    case WeightType::kQ4_0:
      return 8;
    case WeightType::kQ5_0:
      return 16;
    case WeightType::kQ6_K:
      return 32;
    default:
      return 0;
  }
}
int bias_of_scale(WeightType type) {
  return type == WeightType::kQ3_K ? 32 : 0;
}

void add_biases(WeightType type, int sign, Block& block) {
  if (const int bias = sign * bias_of_q(type); bias != 0) {
    for (uint32_t i = 0; i < traits(type).block_elements; ++i) block.q[i] = static_cast<int8_t>(block.q[i] + bias);
  }
  if (const int bias = sign * bias_of_scale(type); bias != 0) {
    for (int8_t& scale : block.scale) scale = static_cast<int8_t>(scale + bias);
  }
}

}  // namespace

uint32_t group_elements(WeightType type) {
  switch (type) {
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
    case WeightType::kQ6_K:
      return 16;
    default:
      return 32;
  }
}

Block unpack_block(WeightType type, const std::byte* bytes) {
  std::array<std::byte, 256> copy;  // fields are moved by reference to their byte
  std::memcpy(copy.data(), bytes, traits(type).block_bytes);
  Block block;
  run_layout<Unpack>(type, copy.data(), block);
  add_biases(type, -1, block);
  if (traits(type).block_elements == 32) block.scale[0] = 1;
  if (type == WeightType::kQ4_1 || type == WeightType::kQ5_1) block.min[0] = -1;
  return block;
}

void pack_block(WeightType type, const Block& block, std::byte* bytes) {
  Block biased = block;
  add_biases(type, +1, biased);
  std::memset(bytes, 0, traits(type).block_bytes);
  const Block& numbers = biased;
  run_layout<Pack>(type, bytes, numbers);
}

}  // namespace leanstream::reference
