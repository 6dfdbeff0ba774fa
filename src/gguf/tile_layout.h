#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "kernels/abi/matrix.h"

namespace leanstream::gguf {

// Tiles begin at multiples of this in the file: the strictest that O_DIRECT asks for on any drive.
inline constexpr uint64_t kTileAlignment = 4096;

// The three matrices of one layer's MLP: gate and up are [d_ff, d_model], down is [d_model, d_ff].
struct MlpShape {
  WeightType gate = WeightType::kF32;
  WeightType up = WeightType::kF32;
  WeightType down = WeightType::kF32;
  uint32_t d_model = 0;
  uint32_t d_ff = 0;
};

// One tile of a layer: where its neurons and its bytes are.
struct Tile {
  uint32_t first_neuron = 0;
  uint32_t n_neurons = 0;    // the last tile of a layer may have fewer than the others
  uint64_t offset = 0;       // of its first byte, from the start of the layer's tiles
  uint64_t up_offset = 0;    // in the tile; the gate's is 0
  uint64_t down_offset = 0;  // in the tile
  uint64_t used_bytes = 0;   // gate, up and down; zeros follow, up to TileLayout::tile_bytes()
};

// The matrices of a tile in memory, all in panel layout.
struct TileMatrices {
  Matrix gate, up;  // [n_neurons, d_model]
  Matrix down;      // [d_model, n_neurons]: columns first_neuron .. first_neuron + n_neurons - 1 of the layer's
};

// How the MLP of one layer is cut into tiles, and what is where in each: docs/format.md. A tile is `tile_neurons`
// consecutive neurons: their rows of gate and up and their columns of down. Pure numbers; immutable once made.
class TileLayout {
 public:
  // Errors, kMalformed: rows that are not whole blocks of their type, a size of 0 or beyond kMaxSize, or tiles that do
  // not hold whole panels and whole blocks, or that straddle sum groups.
  static Result<TileLayout> create(const MlpShape& shape, uint32_t tile_neurons);

  // As many neurons as make tiles of 128 KiB to 512 KiB, as far as the shape lets them.
  static Result<TileLayout> choose(const MlpShape& shape);

  static constexpr uint32_t kMaxSize = 1u << 24;  // of d_model and d_ff: products stay far within 64 bits

  const MlpShape& shape() const { return shape_; }
  uint32_t tile_neurons() const { return tile_neurons_; }
  uint32_t n_tiles() const { return (shape_.d_ff + tile_neurons_ - 1) / tile_neurons_; }
  uint64_t tile_bytes() const { return tile_bytes_; }  // from a tile to the next: a multiple of kTileAlignment

  Tile tile(uint32_t index) const;  // index < n_tiles()

  // `data`: the tile's used_bytes, at a multiple of 32.
  TileMatrices matrices(uint32_t index, const std::byte* data) const;

  // Copies the tile at `data` to where it stands in the layer's whole matrices in panel layout.
  void copy_to_panels(uint32_t index, const std::byte* data, std::byte* gate, std::byte* up, std::byte* down) const;

 private:
  TileLayout(const MlpShape& shape, uint32_t tile_neurons);

  MlpShape shape_;
  uint32_t tile_neurons_ = 0;
  uint64_t tile_bytes_ = 0;
};

}  // namespace leanstream::gguf
