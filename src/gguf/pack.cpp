#include "gguf/pack.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "gguf/checksum.h"
#include "gguf/tensor_type.h"

namespace leanstream::gguf {
namespace {

constexpr uint64_t kVersion = 1;
constexpr const char* kKind = "exact";
constexpr const char* kChecksum = "xxh3-64";
constexpr uint32_t kI8 = 24, kI64 = 27;  // tensor types of the file format

std::string key(const char* name) {
  return std::string("leanstream.pack.") + name;
}

std::string layer_tensor(uint32_t layer, const char* name) {
  return "blk." + std::to_string(layer) + "." + name;
}

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

// Keys of a pack are not optional.
template <typename T>
Result<T> required(const char* name, Result<std::optional<T>> value) {
  if (!value.ok()) return value.status();
  if (!*value) return malformed("key '" + key(name) + "' is missing");
  return **value;
}

Status expect_text(const Model& file, const char* name, const char* known) {
  const Result<std::string> text = required(name, file.find_string(key(name)));
  if (!text.ok()) return text.status();
  if (*text == known) return {};
  return unsupported("'" + key(name) + "' is '" + *text + "'; this version knows '" + known + "'");
}

Result<uint32_t> read_size(const Model& file, const char* name) {
  const Result<uint64_t> size = required(name, file.find_unsigned(key(name)));
  if (!size.ok()) return size.status();
  if (*size > TileLayout::kMaxSize) return malformed("'" + key(name) + "' is " + std::to_string(*size));
  return static_cast<uint32_t>(*size);
}

Result<PackSource> read_source(const Model& file) {
  PackSource source;
  const Result<std::string> name = required("source.name", file.find_string(key("source.name")));
  if (!name.ok()) return name.status();
  const Result<uint64_t> bytes = required("source.bytes", file.find_unsigned(key("source.bytes")));
  if (!bytes.ok()) return bytes.status();
  const Result<std::string> digest = required("source.xxh3", file.find_string(key("source.xxh3")));
  if (!digest.ok()) return digest.status();
  source.name = *name;
  source.bytes = *bytes;
  const char* end = digest->data() + digest->size();
  const auto [parsed_to, error] = std::from_chars(digest->data(), end, source.xxh3, 16);
  if (digest->size() != 16 || parsed_to != end || error != std::errc()) {
    return malformed("'" + key("source.xxh3") + "' is no number of 16 hexadecimal digits");
  }
  return source;
}

Result<const Array*> read_list(const Model& file, const char* name) {
  const Result<const Array*> list = file.find_array(key(name), ValueType::kUint32);
  if (!list.ok()) return list.status();
  if (*list == nullptr) return malformed("key '" + key(name) + "' is missing");
  return *list;
}

Result<WeightType> read_type(const Array& types, const char* name, size_t layer) {
  const WeightTypeTraits* type = find_weight_type(static_cast<uint32_t>(types.unsigneds[layer]));
  if (type != nullptr) return type->type;
  return unsupported("'" + key(name) + "' of layer " + std::to_string(layer) + " is type " +
                     std::to_string(types.unsigneds[layer]) + ", which is not supported");
}

Result<std::vector<TileLayout>> read_layouts(const Model& file) {
  const Result<uint32_t> d_model = read_size(file, "d_model");
  if (!d_model.ok()) return d_model.status();
  const Result<uint32_t> d_ff = read_size(file, "d_ff");
  if (!d_ff.ok()) return d_ff.status();
  const Result<const Array*> neurons = read_list(file, "tile_neurons");
  if (!neurons.ok()) return neurons.status();
  constexpr const char* kTypeLists[] = {"gate_types", "up_types", "down_types"};
  const Array* types[3];
  for (int i = 0; i < 3; ++i) {
    const Result<const Array*> list = read_list(file, kTypeLists[i]);
    if (!list.ok()) return list.status();
    types[i] = *list;
    if (types[i]->size() != (*neurons)->size()) {
      return malformed("'" + key(kTypeLists[i]) + "' has " + std::to_string(types[i]->size()) + " elements, '" +
                       key("tile_neurons") + "' " + std::to_string((*neurons)->size()));
    }
  }

  std::vector<TileLayout> layouts;
  for (size_t i = 0; i < (*neurons)->size(); ++i) {
    WeightType type[3];
    for (int m = 0; m < 3; ++m) {
      const Result<WeightType> known = read_type(*types[m], kTypeLists[m], i);
      if (!known.ok()) return known.status();
      type[m] = *known;
    }
    const Result<TileLayout> layout = TileLayout::create({type[0], type[1], type[2], *d_model, *d_ff},
                                                         static_cast<uint32_t>((*neurons)->unsigneds[i]));
    if (!layout.ok()) return layout.status().with_context("layer " + std::to_string(i));
    layouts.push_back(*layout);
  }
  return layouts;
}

std::string shape_text(uint32_t type_id, const std::vector<uint64_t>& dims) {
  std::string text = std::string(find_tensor_type(type_id)->name) + " [";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + "]";
}

Result<const TensorInfo*> find_checked(const Model& file, const std::string& name, uint32_t type_id,
                                       const std::vector<uint64_t>& dims) {
  const TensorInfo* tensor = file.find_tensor(name);
  if (tensor == nullptr) return malformed("tensor '" + name + "' is missing");
  if (tensor->type_id != type_id || tensor->dims != dims) {
    return malformed("tensor '" + name + "' is " + shape_text(tensor->type_id, tensor->dims) + ", " +
                     shape_text(type_id, dims) + " was expected");
  }
  return tensor;
}

Result<PackedLayer> find_layer(const Model& file, uint32_t layer, const TileLayout& layout) {
  const uint64_t n_tiles = layout.n_tiles();
  const Result<const TensorInfo*> tiles = find_checked(file, tiles_name(layer), kI8, {layout.tile_bytes(), n_tiles});
  if (!tiles.ok()) return tiles.status();
  if ((*tiles)->offset % kTileAlignment != 0) {
    return malformed("tensor '" + (*tiles)->name + "' begins at byte " + std::to_string((*tiles)->offset) +
                     ", not a multiple of " + std::to_string(kTileAlignment));
  }
  const Result<const TensorInfo*> checksums = find_checked(file, checksums_name(layer), kI64, {n_tiles});
  if (!checksums.ok()) return checksums.status();
  return PackedLayer{layout, *tiles, *checksums};
}

TensorInfo replaced_tensor(std::string name, WeightType type, uint64_t rows, uint64_t cols) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.type_id = static_cast<uint32_t>(type);
  tensor.dims = {cols, rows};
  tensor.size_bytes = rows * row_bytes(type, cols);
  return tensor;
}

Value list_value(const std::vector<TileLayout>& layers, auto number_of) {
  Array array;
  array.type = ValueType::kUint32;
  for (const TileLayout& layer : layers) array.unsigneds.push_back(static_cast<uint32_t>(number_of(layer)));
  return {ValueType::kArray, std::move(array)};
}

}  // namespace

Result<std::optional<Pack>> Pack::read(const Model& file) {
  const Result<std::optional<uint64_t>> version = file.find_unsigned(key("version"));
  if (!version.ok()) return version.status();
  if (!*version) return std::optional<Pack>();
  const auto failed = [](const Status& status) { return status.with_context("cannot read the pack"); };
  if (**version != kVersion) {
    return failed(unsupported("its version is " + std::to_string(**version) + "; this program knows version " +
                              std::to_string(kVersion)));
  }
  if (Status s = expect_text(file, "kind", kKind); !s.ok()) return failed(s);
  if (Status s = expect_text(file, "checksum", kChecksum); !s.ok()) return failed(s);

  Pack pack;
  Result<PackSource> source = read_source(file);
  if (!source.ok()) return failed(source.status());
  pack.source_ = *std::move(source);
  const Result<std::vector<TileLayout>> layouts = read_layouts(file);
  if (!layouts.ok()) return failed(layouts.status());
  for (uint32_t i = 0; i < layouts->size(); ++i) {
    const Result<PackedLayer> layer = find_layer(file, i, (*layouts)[i]);
    if (!layer.ok()) return failed(layer.status());
    pack.layers_.push_back(*layer);
    const MlpShape& shape = (*layouts)[i].shape();
    const TensorInfo replaced[] = {replaced_tensor(gate_name(i), shape.gate, shape.d_ff, shape.d_model),
                                   replaced_tensor(up_name(i), shape.up, shape.d_ff, shape.d_model),
                                   replaced_tensor(down_name(i), shape.down, shape.d_model, shape.d_ff)};
    for (const TensorInfo& tensor : replaced) {
      if (file.find_tensor(tensor.name) != nullptr) {
        return failed(malformed("tensor '" + tensor.name + "' is there, and so are tiles for it"));
      }
      pack.replaced_.emplace(tensor.name, tensor);
    }
  }
  return std::optional<Pack>(std::move(pack));
}

const TensorInfo* find_weight(const Model& file, const std::optional<Pack>& pack, std::string_view name) {
  if (const TensorInfo* tensor = file.find_tensor(name)) return tensor;
  if (!pack) return nullptr;
  const auto found = pack->replaced().find(name);
  return found == pack->replaced().end() ? nullptr : &found->second;
}

Result<std::vector<uint64_t>> read_checksums(const Model& file, const PackedLayer& layer) {
  std::vector<uint64_t> checksums(layer.layout.n_tiles());
  if (Status s = file.read_tensor(*layer.checksums, 0, std::as_writable_bytes(std::span(checksums))); !s.ok()) return s;
  return checksums;
}

Status check_tile(const Model& file, const PackedLayer& layer, uint32_t tile, std::span<const std::byte> bytes,
                  uint64_t checksum) {
  const uint64_t actual = xxh3(bytes);
  if (actual == checksum) return {};
  const uint64_t begin = layer.tiles->offset + layer.layout.tile(tile).offset;
  return malformed("tile " + std::to_string(tile) + " of '" + layer.tiles->name +
                   "' is damaged: the checksum of bytes " + std::to_string(begin) + " to " +
                   std::to_string(begin + bytes.size() - 1) + " of " + file.files()[layer.tiles->file_index].path() +
                   " is " + hex(actual) + ", not " + hex(checksum));
}

void set_pack_keys(const PackHead& head, Writer& writer) {
  writer.set_uint32(key("version"), kVersion);
  writer.set_string(key("kind"), kKind);
  writer.set_string(key("checksum"), kChecksum);
  writer.set_string(key("source.name"), head.source.name);
  writer.set(key("source.bytes"), {ValueType::kUint64, head.source.bytes});
  writer.set_string(key("source.xxh3"), hex(head.source.xxh3));
  writer.set_uint32(key("d_model"), head.layers.front().shape().d_model);
  writer.set_uint32(key("d_ff"), head.layers.front().shape().d_ff);
  writer.set(key("tile_neurons"), list_value(head.layers, [](const TileLayout& l) { return l.tile_neurons(); }));
  writer.set(key("gate_types"), list_value(head.layers, [](const TileLayout& l) { return l.shape().gate; }));
  writer.set(key("up_types"), list_value(head.layers, [](const TileLayout& l) { return l.shape().up; }));
  writer.set(key("down_types"), list_value(head.layers, [](const TileLayout& l) { return l.shape().down; }));
}

std::string gate_name(uint32_t layer) {
  return layer_tensor(layer, "ffn_gate.weight");
}
std::string up_name(uint32_t layer) {
  return layer_tensor(layer, "ffn_up.weight");
}
std::string down_name(uint32_t layer) {
  return layer_tensor(layer, "ffn_down.weight");
}
std::string tiles_name(uint32_t layer) {
  return layer_tensor(layer, "ffn_tiles");
}
std::string checksums_name(uint32_t layer) {
  return layer_tensor(layer, "ffn_tile_checksums");
}

}  // namespace leanstream::gguf
