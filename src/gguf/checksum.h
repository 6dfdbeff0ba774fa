#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace leanstream::gguf {

// XXH3 with 64 bits, seed 0 (`xxhsum -H3`).
uint64_t xxh3(std::span<const std::byte> bytes);

// The same of bytes that come in parts. Single-thread.
class Xxh3Stream {
 public:
  Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  ~Xxh3Stream();

  void add(std::span<const std::byte> bytes);
  uint64_t digest() const;  // of all that was added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leanstream::gguf
