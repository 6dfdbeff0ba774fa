#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/reader.h"
#include "gguf/tile_layout.h"
#include "gguf/writer.h"

namespace leanstream::gguf {

// The file that a pack was made of.
struct PackSource {
  std::string name;    // its file name, without folders; of a split set, the first part's
  uint64_t bytes = 0;  // all parts together
  uint64_t xxh3 = 0;   // of all its bytes, the parts one after another
};

// What the keys "leanstream.pack.*" say. All layers have the same d_model and d_ff; types and tiles are each layer's
// own.
struct PackHead {
  PackSource source;
  std::vector<TileLayout> layers;
};

// One layer of a pack. The pointers are into the file that it was read from.
struct PackedLayer {
  TileLayout layout;
  const TensorInfo* tiles;      // tile i is its bytes from i * layout.tile_bytes() on
  const TensorInfo* checksums;  // one per tile
};

// The exact pack in a file: the MLP of every layer as tiles (docs/format.md). Immutable; stays valid as long as the
// gguf::Model that it was read from, which may be moved.
class Pack {
 public:
  // Nothing for a file that is no pack. Everything is checked against the file's tensors: reading any tile stays within
  // its tensor. Errors: kMalformed naming the key or tensor, kUnsupported for a version or kind that we do not know.
  static Result<std::optional<Pack>> read(const Model& file);

  const PackSource& source() const { return source_; }
  const std::vector<PackedLayer>& layers() const { return layers_; }

  // The tensors that tiles stand for, as the source had them: name, type and dims (what they say of files and offsets
  // means nothing). By name.
  const std::map<std::string, TensorInfo, std::less<>>& replaced() const { return replaced_; }

 private:
  Pack() = default;

  PackSource source_;
  std::vector<PackedLayer> layers_;
  std::map<std::string, TensorInfo, std::less<>> replaced_;
};

// The tensor of this name: the file's, or the one that tiles of `pack` stand for. nullptr when there is neither.
const TensorInfo* find_weight(const Model& file, const std::optional<Pack>& pack, std::string_view name);

// Of all tiles of a layer. Errors: kIo.
Result<std::vector<uint64_t>> read_checksums(const Model& file, const PackedLayer& layer);

// Whether `bytes`, the used ones of a tile, are those that were written. Error: kMalformed naming the tile.
Status check_tile(const Model& file, const PackedLayer& layer, uint32_t tile, std::span<const std::byte> bytes,
                  uint64_t checksum);

// Sets the keys that Pack::read reads.
void set_pack_keys(const PackHead& head, Writer& writer);

// The tensors of layer `layer`.
std::string gate_name(uint32_t layer);
std::string up_name(uint32_t layer);
std::string down_name(uint32_t layer);
std::string tiles_name(uint32_t layer);
std::string checksums_name(uint32_t layer);

}  // namespace leanstream::gguf
