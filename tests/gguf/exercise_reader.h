#pragma once

#include <cstddef>
#include <span>

namespace leanstream::gguf {

// Opens `bytes` as a model and, where that succeeds, uses everything that open() promises to be safe: typed access to
// every key, the first and last byte of every tensor. Aborts where a promise is broken. True where it opened.
bool exercise_reader(std::span<const std::byte> bytes);

}  // namespace leanstream::gguf
