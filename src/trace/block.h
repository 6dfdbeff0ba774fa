#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leanstream::trace {

inline constexpr std::string_view kMagic = "lstrace1";
inline constexpr size_t kChecksumBytes = 8;

// Unsigned LEB128: seven bits a byte, low ones first, the highest bit set in all bytes but the last.
void append_varint(std::string& out, uint64_t value);
void append_checksum(std::string& out, std::span<const std::byte> payload);
bool checksum_matches(std::span<const std::byte> payload, std::span<const std::byte> checksum);

// Takes numbers and bytes off the front of untrusted bytes. Nothing where they end, or a number has more than 64 bits;
// then the cursor is of no further use.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size() - at_; }
  size_t offset() const { return at_; }
  std::optional<uint64_t> varint();
  std::optional<uint64_t> varint_up_to(uint64_t most);
  std::optional<std::span<const std::byte>> take(uint64_t count);

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace leanstream::trace
