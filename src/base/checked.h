#pragma once

#include <cstdint>
#include <optional>

namespace leanstream {

// Arithmetic on untrusted sizes: nothing where the result would not fit 64 bits.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
// `value` rounded up to a multiple of `alignment`, a power of two.
inline std::optional<uint64_t> checked_align_up(uint64_t value, uint64_t alignment) {
  const std::optional<uint64_t> padded = checked_add(value, alignment - 1);
  if (!padded) return std::nullopt;
  return *padded & ~(alignment - 1);
}
// Unchecked, for our own sizes.
constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace leanstream
