#include "tools/leanstream/convert/pack.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "gguf/checksum.h"
#include "gguf/pack.h"
#include "gguf/reader.h"
#include "gguf/tensor_type.h"
#include "gguf/writer.h"
#include "kernels/cpu/kernels.h"

namespace leanstream::convert {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;  // read and written at once
constexpr gguf::TensorType kBytesType{24, "I8", 1, 1}, kChecksumType{27, "I64", 1, 8};

// The three tensors of a layer, and the tiles that take their place.
struct Layer {
  const gguf::TensorInfo *gate, *up, *down;
  gguf::TileLayout layout;
};

// What changes when a file is written to.
struct FileState {
  off_t size_bytes;
  struct timespec modified;

  bool operator==(const FileState& other) const {
    return size_bytes == other.size_bytes && modified.tv_sec == other.modified.tv_sec &&
           modified.tv_nsec == other.modified.tv_nsec;
  }
};

std::vector<FileState> states_of(const gguf::Model& model) {
  std::vector<FileState> states;
  for (const File& file : model.files()) {
    struct stat st {};
    ::fstat(file.descriptor(), &st);  // of a descriptor that is open, it does not fail
    states.push_back({st.st_size, st.st_mtim});
  }
  return states;
}

Status refuse_to_replace_input(const gguf::Model& model, const std::string& output) {
  for (const File& part : model.files()) {
    if (same_file(output, part.path())) {
      return invalid_argument("cannot write " + output + ": it is the model that is read, " + part.path());
    }
  }
  return {};
}

// A matrix of the MLP, of a type that we compute with and the shape that is asked for (0: any).
Result<const gguf::TensorInfo*> find_matrix(const gguf::Model& model, const std::string& name, uint64_t cols,
                                            uint64_t rows) {
  const gguf::TensorInfo* tensor = model.find_tensor(name);
  if (tensor == nullptr) return unsupported("tensor '" + name + "' is missing: only gated MLPs can be packed");
  if (find_weight_type(tensor->type_id) == nullptr) {
    return unsupported("tensor '" + name + "' is of type " + gguf::find_tensor_type(tensor->type_id)->name +
                       ", which is not supported");
  }
  const auto wrong = [](uint64_t size, uint64_t wanted) {
    return wanted == 0 ? size > gguf::TileLayout::kMaxSize : size != wanted;
  };
  if (tensor->dims.size() != 2 || wrong(tensor->dims[0], cols) || wrong(tensor->dims[1], rows)) {
    return unsupported("tensor '" + name + "' has not the shape of the other layers' or of its layer");
  }
  return tensor;
}

Result<std::vector<Layer>> plan_layers(const gguf::Model& model) {
  const Result<std::optional<std::string>> architecture = model.find_string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  const Result<std::optional<uint64_t>> count = model.find_unsigned(architecture->value_or("") + ".block_count");
  if (!count.ok()) return count.status();
  const uint64_t n_layers = count->value_or(0);
  if (n_layers == 0) return unsupported("it says of no layers ('block_count')");

  std::vector<Layer> layers;
  uint64_t d_model = 0, d_ff = 0;
  for (uint32_t i = 0; i < n_layers; ++i) {
    const Result<const gguf::TensorInfo*> gate = find_matrix(model, gguf::gate_name(i), d_model, d_ff);
    if (!gate.ok()) return gate.status();
    d_model = (*gate)->dims[0];
    d_ff = (*gate)->dims[1];
    const Result<const gguf::TensorInfo*> up = find_matrix(model, gguf::up_name(i), d_model, d_ff);
    if (!up.ok()) return up.status();
    const Result<const gguf::TensorInfo*> down = find_matrix(model, gguf::down_name(i), d_ff, d_model);
    if (!down.ok()) return down.status();
    const auto type = [](const gguf::TensorInfo* tensor) { return find_weight_type(tensor->type_id)->type; };
    const Result<gguf::TileLayout> layout = gguf::TileLayout::choose(
        {type(*gate), type(*up), type(*down), static_cast<uint32_t>(d_model), static_cast<uint32_t>(d_ff)});
    if (!layout.ok()) return layout.status().with_context("layer " + std::to_string(i));
    layers.push_back({*gate, *up, *down, *layout});
  }
  return layers;
}

void copy_metadata(const gguf::Model& model, gguf::Writer& writer) {
  for (const auto& [key, value] : model.metadata()) {
    if (!key.starts_with("split.") && key != "general.alignment") writer.set(key, value);
  }
}

bool is_packed(const std::vector<Layer>& layers, const gguf::TensorInfo& tensor) {
  return std::any_of(layers.begin(), layers.end(), [&](const Layer& layer) {
    return &tensor == layer.gate || &tensor == layer.up || &tensor == layer.down;
  });
}

// Interleaves file rows into panels; row r is at rows + r * stride.
void pack_panels(const Matrix& panels, const std::byte* rows, size_t stride, std::byte* out) {
  const kernels::Kernels& kernels = *kernels::select_kernels();
  for (uint32_t row = 0; row < panels.rows; row += kPanelRows) {
    kernels.pack_panel(panels.type, panels.cols, std::min(kPanelRows, panels.rows - row), rows + row * stride, stride,
                       out + row / kPanelRows * panel_bytes(panels.type, panels.cols));
  }
}

class Packer {
 public:
  Packer(const gguf::Model& model, const PackParams& params) : model_(model), params_(params) {}

  // The checksum of all bytes of the source.
  Result<uint64_t> digest_source(uint64_t output_bytes_estimate) {
    total_bytes_ = model_.total_file_bytes() + output_bytes_estimate;
    gguf::Xxh3Stream digest;
    for (const File& file : model_.files()) {
      for (uint64_t at = 0; at < file.size_bytes(); at += kChunkBytes) {
        chunk_.resize(std::min(kChunkBytes, file.size_bytes() - at));
        if (Status s = file.read_at(at, chunk_); !s.ok()) return s;
        digest.add(chunk_);
        if (Status s = advance(chunk_.size()); !s.ok()) return s;
      }
    }
    return digest.digest();
  }

  Status copy(const gguf::TensorInfo& tensor, gguf::Writer& writer) {
    for (uint64_t at = 0; at < tensor.size_bytes; at += kChunkBytes) {
      chunk_.resize(std::min(kChunkBytes, tensor.size_bytes - at));
      if (Status s = model_.read_tensor(tensor, at, chunk_); !s.ok()) return s;
      if (Status s = write(chunk_, writer); !s.ok()) return s;
    }
    return {};
  }

  // Writes the layer's tiles, and returns their checksums. Of down, strips of columns are read: as many tiles' as
  // memory is set aside for.
  Result<std::vector<uint64_t>> write_tiles(const Layer& layer, gguf::Writer& writer) {
    const gguf::MlpShape& shape = layer.layout.shape();
    const uint64_t columns_of_tile = row_bytes(shape.down, layer.layout.tile_neurons()) * shape.d_model;
    const auto strip_tiles = static_cast<uint32_t>(std::max<uint64_t>(params_.strip_bytes / columns_of_tile, 1));
    std::vector<uint64_t> checksums;
    tile_.assign(layer.layout.tile_bytes(), std::byte{0});
    for (uint32_t begin = 0; begin < layer.layout.n_tiles(); begin += strip_tiles) {
      const uint32_t end = std::min(begin + strip_tiles, layer.layout.n_tiles());
      const gguf::Tile first = layer.layout.tile(begin), last = layer.layout.tile(end - 1);
      const uint32_t columns = last.first_neuron + last.n_neurons - first.first_neuron;
      if (Status s = read_strip(*layer.down, shape, first.first_neuron, columns); !s.ok()) return s;
      for (uint32_t i = begin; i < end; ++i) {
        if (Status s = make_tile(layer, i, first.first_neuron, columns); !s.ok()) return s;
        checksums.push_back(gguf::xxh3(std::span(tile_).first(layer.layout.tile(i).used_bytes)));
        if (Status s = write(tile_, writer); !s.ok()) return s;
      }
    }
    return checksums;
  }

  Status write(std::span<const std::byte> bytes, gguf::Writer& writer) {
    if (Status s = writer.write_tensor(bytes); !s.ok()) return s;
    return advance(bytes.size());
  }

 private:
  // Columns [first, first + columns) of every row of down.
  Status read_strip(const gguf::TensorInfo& down, const gguf::MlpShape& shape, uint32_t first, uint32_t columns) {
    const size_t stride = row_bytes(shape.down, shape.d_ff), part = row_bytes(shape.down, columns);
    strip_.resize(part * shape.d_model);
    if (columns == shape.d_ff) return model_.read_tensor(down, 0, strip_);
    for (uint32_t row = 0; row < shape.d_model; ++row) {
      const std::span<std::byte> out(strip_.data() + row * part, part);
      if (Status s = model_.read_tensor(down, row * stride + row_bytes(shape.down, first), out); !s.ok()) return s;
    }
    return {};
  }

  // Fills tile_. strip_ holds `columns` columns of down from `first` on.
  Status make_tile(const Layer& layer, uint32_t index, uint32_t first, uint32_t columns) {
    const gguf::Tile tile = layer.layout.tile(index);
    const gguf::TileMatrices matrices = layer.layout.matrices(index, tile_.data());
    std::fill(tile_.begin() + static_cast<ptrdiff_t>(tile.used_bytes), tile_.end(), std::byte{0});
    for (const auto& [tensor, matrix, offset] :
         {std::tuple(layer.gate, matrices.gate, uint64_t{0}), std::tuple(layer.up, matrices.up, tile.up_offset)}) {
      const size_t stride = row_bytes(matrix.type, matrix.cols);
      chunk_.resize(stride * tile.n_neurons);
      if (Status s = model_.read_tensor(*tensor, stride * tile.first_neuron, chunk_); !s.ok()) return s;
      pack_panels(matrix, chunk_.data(), stride, tile_.data() + offset);
    }
    const WeightType type = matrices.down.type;
    pack_panels(matrices.down, strip_.data() + row_bytes(type, tile.first_neuron - first), row_bytes(type, columns),
                tile_.data() + tile.down_offset);
    return {};
  }

  Status advance(uint64_t bytes) {
    done_bytes_ += bytes;
    if (params_.progress && !params_.progress(std::min(done_bytes_, total_bytes_), total_bytes_)) {
      return cancelled("pack was cancelled");
    }
    return {};
  }

  const gguf::Model& model_;
  const PackParams& params_;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
  std::vector<std::byte> chunk_, strip_, tile_;
};

// Dense tensors first: what stays in memory is read in one sweep. Checksums last: they are known last.
void add_tensors(const gguf::Model& model, const std::vector<Layer>& layers, gguf::Writer& writer) {
  for (const gguf::TensorInfo& tensor : model.tensors()) {
    if (!is_packed(layers, tensor)) {
      writer.add_tensor(tensor.name, *gguf::find_tensor_type(tensor.type_id), tensor.dims);
    }
  }
  for (uint32_t i = 0; i < layers.size(); ++i) {
    const gguf::TileLayout& layout = layers[i].layout;
    writer.add_tensor(gguf::tiles_name(i), kBytesType, {layout.tile_bytes(), layout.n_tiles()});
  }
  for (uint32_t i = 0; i < layers.size(); ++i) {
    writer.add_tensor(gguf::checksums_name(i), kChecksumType, {layers[i].layout.n_tiles()});
  }
}

Status write_tensors(const gguf::Model& model, const std::vector<Layer>& layers, Packer& packer, gguf::Writer& writer) {
  for (const gguf::TensorInfo& tensor : model.tensors()) {
    if (is_packed(layers, tensor)) continue;
    if (Status s = packer.copy(tensor, writer); !s.ok()) return s;
  }
  std::vector<std::vector<uint64_t>> checksums;
  for (const Layer& layer : layers) {
    Result<std::vector<uint64_t>> of_layer = packer.write_tiles(layer, writer);
    if (!of_layer.ok()) return of_layer.status();
    checksums.push_back(*std::move(of_layer));
  }
  for (const std::vector<uint64_t>& of_layer : checksums) {
    if (Status s = packer.write(std::as_bytes(std::span(of_layer)), writer); !s.ok()) return s;
  }
  return {};
}

Status refuse_pack(const gguf::Model& model) {
  if (model.find("leanstream.pack.version") == nullptr) return {};
  return invalid_argument("cannot pack " + model.path() + ": it is a pack already");
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Result<Report> pack(const PackParams& params) {
  const Result<gguf::Model> opened = gguf::Model::open(params.input);
  if (!opened.ok()) return opened.status();
  const gguf::Model& model = *opened;
  const std::vector<FileState> states = states_of(model);
  if (Status s = refuse_pack(model); !s.ok()) return s;
  if (Status s = refuse_to_replace_input(model, params.output); !s.ok()) return s;
  const Result<std::vector<Layer>> layers = plan_layers(model);
  if (!layers.ok()) return layers.status().with_context("cannot pack " + params.input);

  Report report;
  gguf::PackHead head;
  for (const Layer& layer : *layers) head.layers.push_back(layer.layout);
  head.source = {file_name(params.input), model.total_file_bytes(), 0};
  gguf::Writer writer(gguf::kTileAlignment);
  copy_metadata(model, writer);
  gguf::set_pack_keys(head, writer);
  add_tensors(model, *layers, writer);
  report.file_bytes = writer.file_bytes();
  for (const gguf::TensorInfo& tensor : model.tensors()) report.parameters += tensor.element_count();

  if (Status s = writer.check_room(params.output); !s.ok()) return s;  // before the source is read, which may take long
  Packer packer(model, params);
  const Result<uint64_t> digest = packer.digest_source(report.file_bytes);
  if (!digest.ok()) return digest.status();
  head.source.xxh3 = *digest;
  gguf::set_pack_keys(head, writer);
  if (Status s = writer.begin(params.output); !s.ok()) return s;
  if (Status s = write_tensors(model, *layers, packer, writer); !s.ok()) return s;
  if (states_of(model) != states) {
    return Status(Code::kIo, "cannot pack " + params.input + ": it was changed meanwhile");
  }
  if (Status s = writer.commit(); !s.ok()) return s;
  return report;
}

Result<PackCheck> check_pack(const std::string& path, const Progress& progress) {
  const Result<gguf::Model> model = gguf::Model::open(path);
  if (!model.ok()) return model.status();
  const Result<std::optional<gguf::Pack>> pack = gguf::Pack::read(*model);
  if (!pack.ok()) return pack.status().with_context(path);
  if (!*pack) return invalid_argument("cannot check " + path + ": it is no pack");
  uint64_t total_bytes = 0, damaged = 0;
  for (const gguf::PackedLayer& layer : (*pack)->layers()) total_bytes += layer.tiles->size_bytes;

  PackCheck check;
  Status first_damage;
  std::vector<std::byte> bytes;
  for (const gguf::PackedLayer& layer : (*pack)->layers()) {
    const Result<std::vector<uint64_t>> checksums = gguf::read_checksums(*model, layer);
    if (!checksums.ok()) return checksums.status();
    for (uint32_t i = 0; i < layer.layout.n_tiles(); ++i, ++check.tiles) {
      const gguf::Tile tile = layer.layout.tile(i);
      bytes.resize(tile.used_bytes);
      if (Status s = (*model).read_tensor(*layer.tiles, tile.offset, bytes); !s.ok()) return s;
      if (Status s = gguf::check_tile(*model, layer, i, bytes, (*checksums)[i]); !s.ok()) {
        if (damaged++ == 0) first_damage = std::move(s);
      }
      check.bytes += layer.layout.tile_bytes();
      if (progress && !progress(check.bytes, total_bytes)) return cancelled("checking was cancelled");
    }
  }
  if (damaged == 0) return check;
  return Status(first_damage.code(), std::to_string(damaged) + " of " + std::to_string(check.tiles) +
                                         " tiles are damaged; the first: " + first_damage.message());
}

}  // namespace leanstream::convert
