#include "trace/block.h"

#include <xxhash.h>

namespace leanstream::trace {

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

namespace {

uint64_t checksum_of(std::span<const std::byte> payload) {
  return XXH3_64bits(payload.data(), payload.size());
}

}  // namespace

void append_checksum(std::string& out, std::span<const std::byte> payload) {
  const uint64_t checksum = checksum_of(payload);
  for (size_t i = 0; i < kChecksumBytes; ++i) out.push_back(static_cast<char>(checksum >> (8 * i)));
}

bool checksum_matches(std::span<const std::byte> payload, std::span<const std::byte> checksum) {
  uint64_t stored = 0;
  for (size_t i = 0; i < kChecksumBytes; ++i) stored |= std::to_integer<uint64_t>(checksum[i]) << (8 * i);
  return stored == checksum_of(payload);
}

std::optional<uint64_t> Cursor::varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (left() == 0) return std::nullopt;
    const auto byte = std::to_integer<uint64_t>(bytes_[at_++]);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<uint64_t> Cursor::varint_up_to(uint64_t most) {
  const std::optional<uint64_t> value = varint();
  return value && *value <= most ? value : std::nullopt;
}

std::optional<std::span<const std::byte>> Cursor::take(uint64_t count) {
  if (count > left()) return std::nullopt;
  const std::span<const std::byte> taken = bytes_.subspan(at_, count);
  at_ += count;
  return taken;
}

}  // namespace leanstream::trace
