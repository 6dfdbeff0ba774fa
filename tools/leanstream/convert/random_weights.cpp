#include "tools/leanstream/convert/random_weights.h"

#include <algorithm>
#include <cstring>

#include "kernels/reference/quantize.h"

namespace leanstream::convert {
namespace {

constexpr size_t kUnits = 1024;  // a power of two; drawn by 16 bits of a random number

// Roughly normal, of deviation 1: the sum of four uniform numbers, in exact arithmetic, so that no maths library shows.
float roughly_normal(Random& random) {
  const uint64_t bits = random.next();
  int32_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>(bits >> (16 * i) & 0xffff) - 0x8000;
  constexpr float kDeviationOfSum = 37837.227f;  // 65536 * sqrt(4 / 12)
  return static_cast<float>(sum) / kDeviationOfSum;
}

}  // namespace

RandomWeights::RandomWeights(WeightType type, float deviation, Random& random) {
  const size_t unit_elements = std::max(traits(type).block_elements, 32u);
  unit_bytes_ = row_bytes(type, unit_elements);
  std::vector<float> numbers(kUnits * unit_elements);
  for (float& x : numbers) x = roughly_normal(random) * deviation;
  pool_.resize(kUnits * unit_bytes_);
  reference::quantize(type, numbers.data(), numbers.size(), pool_.data());
}

void RandomWeights::fill(Random& random, std::span<std::byte> out) const {
  uint64_t bits = 0;
  for (size_t unit = 0; !out.empty(); ++unit) {
    bits = unit % 4 == 0 ? random.next() : bits >> 16;
    const size_t n = std::min(out.size(), unit_bytes_);
    std::memcpy(out.data(), pool_.data() + bits % kUnits * unit_bytes_, n);
    out = out.subspan(n);
  }
}

}  // namespace leanstream::convert
