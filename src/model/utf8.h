#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leanstream::model {

// What stands at the front of some bytes that should be UTF-8.
struct Utf8Head {
  enum Kind : uint8_t {
    kCharacter,   // a whole, well-formed character
    kUnfinished,  // the bytes end inside what may still become one
    kInvalid,     // a byte that no character begins with, or that breaks one off
  };
  Kind kind;
  uint8_t size;  // bytes of the character or of its unfinished part; 1 when invalid
};

// Well-formed as Unicode's table 3-7 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
// `bytes` is not empty.
inline Utf8Head utf8_head(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {Utf8Head::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Head::kInvalid, 1};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Utf8Head::kUnfinished, static_cast<uint8_t>(i)};
    uint8_t low = 0x80, high = 0xBF;
    if (i == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (at(i) < low || at(i) > high) return {Utf8Head::kInvalid, 1};
  }
  return {Utf8Head::kCharacter, static_cast<uint8_t>(size)};
}

}  // namespace leanstream::model
