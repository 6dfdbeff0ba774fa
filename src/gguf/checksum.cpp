#include "gguf/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state as a complete type
#include <xxhash.h>

namespace leanstream::gguf {

struct Xxh3Stream::State {
  XXH3_state_t xxh3;
};

uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh3);
}
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Xxh3Stream::digest() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

}  // namespace leanstream::gguf
