#pragma once

#include <cstdint>

namespace leanstream::cache {

// What is read, cached and flagged as one: a neuron, a pair, a tile, a chunk of rows. Pieces of all layers are numbered
// together, from 0. A slot is a place for one piece, whatever its size.
using Piece = uint32_t;
using Slot = uint32_t;

inline constexpr uint32_t kNone = UINT32_MAX;  // no piece, no slot

}  // namespace leanstream::cache
