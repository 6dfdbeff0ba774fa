#include <cstring>

#include "kernels/abi/half.h"
#include "kernels/reference/blocks.h"
#include "kernels/reference/quantize.h"

namespace leanstream::reference {
namespace {

void dequantize_halves(const std::byte* bytes, size_t n, float (*convert)(uint16_t), float* out) {
  for (size_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, sizeof bits);
    out[i] = convert(bits);
  }
}

}  // namespace

void dequantize(WeightType type, const std::byte* blocks, size_t n, float* out) {
  if (type == WeightType::kF32) {
    std::memcpy(out, blocks, n * sizeof(float));
    return;
  }
  if (type == WeightType::kF16) return dequantize_halves(blocks, n, half_to_float, out);
  if (type == WeightType::kBF16) return dequantize_halves(blocks, n, bfloat16_to_float, out);

  const auto [id, name, block_elements, block_bytes] = traits(type);
  const uint32_t group = group_elements(type);
  for (size_t begin = 0; begin < n; begin += block_elements, blocks += block_bytes) {
    const Block block = unpack_block(type, blocks);
    for (uint32_t i = 0; i < block_elements; ++i) {
      const uint32_t g = i / group;
      const float scale = block.d * static_cast<float>(block.scale[g]);
      const float offset = block.dmin * static_cast<float>(block.min[g]);
      out[begin + i] = scale * static_cast<float>(block.q[i]) - offset;
    }
  }
}

}  // namespace leanstream::reference
