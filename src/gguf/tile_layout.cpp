#include "gguf/tile_layout.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/checked.h"

namespace leanstream::gguf {
namespace {

// Below it drives lose bandwidth (docs/format.md).
constexpr uint64_t kLeastTileBytes = 128 << 10;

Status check_row(const char* matrix, WeightType type, uint32_t cols) {
  const WeightTypeTraits& t = traits(type);
  if (cols % t.block_elements == 0) return {};
  return malformed(std::string("the rows of ") + matrix + ", " + std::to_string(cols) +
                   " elements, are not whole blocks of " + t.name + " (" + std::to_string(t.block_elements) + ")");
}

Status check_shape(const MlpShape& shape) {
  for (const uint32_t size : {shape.d_model, shape.d_ff}) {
    if (size == 0 || size > TileLayout::kMaxSize) {
      return malformed("a width of " + std::to_string(size) + ", not between 1 and " +
                       std::to_string(TileLayout::kMaxSize));
    }
  }
  if (Status s = check_row("the gate", shape.gate, shape.d_model); !s.ok()) return s;
  if (Status s = check_row("up", shape.up, shape.d_model); !s.ok()) return s;
  return check_row("down", shape.down, shape.d_ff);
}

// Whole panels of gate and up rows, and whole blocks of down columns; both are powers of two.
uint32_t least_neurons(const MlpShape& shape) {
  return std::max(kPanelRows, traits(shape.down).block_elements);
}

Tile place(const MlpShape& shape, uint32_t first_neuron, uint32_t n_neurons) {
  Tile tile{first_neuron, n_neurons};
  tile.up_offset = matrix_bytes(shape.gate, Layout::kPanel, n_neurons, shape.d_model);
  tile.down_offset = tile.up_offset + matrix_bytes(shape.up, Layout::kPanel, n_neurons, shape.d_model);
  tile.used_bytes = tile.down_offset + matrix_bytes(shape.down, Layout::kPanel, shape.d_model, n_neurons);
  return tile;
}

}  // namespace

TileLayout::TileLayout(const MlpShape& shape, uint32_t tile_neurons)
    : shape_(shape),
      tile_neurons_(tile_neurons),
      tile_bytes_(align_up(place(shape, 0, std::min(tile_neurons, shape.d_ff)).used_bytes, kTileAlignment)) {}

Result<TileLayout> TileLayout::create(const MlpShape& shape, uint32_t tile_neurons) {
  if (Status s = check_shape(shape); !s.ok()) return s;
  const uint32_t least = least_neurons(shape);
  if (tile_neurons == 0 || tile_neurons % least != 0 || kSumGroup % tile_neurons != 0) {
    return malformed("tiles of " + std::to_string(tile_neurons) + " neurons, not a multiple of " +
                     std::to_string(least) + " that divides " + std::to_string(kSumGroup));
  }
  return TileLayout(shape, tile_neurons);
}

Result<TileLayout> TileLayout::choose(const MlpShape& shape) {
  if (Status s = check_shape(shape); !s.ok()) return s;
  uint32_t neurons = least_neurons(shape);
  while (neurons < kSumGroup && neurons < shape.d_ff && place(shape, 0, neurons).used_bytes < kLeastTileBytes) {
    neurons *= 2;
  }
  return TileLayout(shape, neurons);
}

Tile TileLayout::tile(uint32_t index) const {
  const uint32_t first = index * tile_neurons_;
  Tile tile = place(shape_, first, std::min(tile_neurons_, shape_.d_ff - first));
  tile.offset = index * tile_bytes_;
  return tile;
}

TileMatrices TileLayout::matrices(uint32_t index, const std::byte* data) const {
  const Tile t = tile(index);
  return {{shape_.gate, Layout::kPanel, t.n_neurons, shape_.d_model, data},
          {shape_.up, Layout::kPanel, t.n_neurons, shape_.d_model, data + t.up_offset},
          {shape_.down, Layout::kPanel, shape_.d_model, t.n_neurons, data + t.down_offset}};
}

void TileLayout::copy_to_panels(uint32_t index, const std::byte* data, std::byte* gate, std::byte* up,
                                std::byte* down) const {
  const Tile t = tile(index);
  const uint32_t first_panel = t.first_neuron / kPanelRows;
  std::memcpy(gate + first_panel * panel_bytes(shape_.gate, shape_.d_model), data, t.up_offset);
  std::memcpy(up + first_panel * panel_bytes(shape_.up, shape_.d_model), data + t.up_offset,
              t.down_offset - t.up_offset);
  // Of every panel of down rows, the tile has some blocks.
  const size_t whole = panel_bytes(shape_.down, shape_.d_ff), part = panel_bytes(shape_.down, t.n_neurons);
  const std::byte* from = data + t.down_offset;
  std::byte* to = down + panel_bytes(shape_.down, t.first_neuron);
  for (uint32_t panel = 0; panel < panel_count(shape_.d_model); ++panel, from += part, to += whole) {
    std::memcpy(to, from, part);
  }
}

}  // namespace leanstream::gguf
