#include "runtime/describe.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "gguf/pack.h"
#include "gguf/tensor_type.h"

namespace leanstream::runtime {
namespace {

using Json = nlohmann::ordered_json;

std::string type_name(uint32_t type_id) {
  const gguf::TensorType* known = gguf::find_tensor_type(type_id);
  return known != nullptr ? known->name : "type " + std::to_string(type_id);
}

Json to_json(const gguf::Array& array, size_t max_array) {
  if (max_array != 0 && array.size() > max_array)
    return {{"array", gguf::value_type_name(array.type)}, {"length", array.size()}};
  Json json = Json::array();
  for (const uint64_t element : array.unsigneds)
    json.push_back(array.type == gguf::ValueType::kBool ? Json(element != 0) : Json(element));
  for (const int64_t element : array.signeds) json.push_back(element);
  for (const double element : array.floats) json.push_back(element);
  for (size_t i = 0; i < array.strings.size(); ++i) json.push_back(array.strings[i]);
  for (const gguf::Array& element : array.arrays) json.push_back(to_json(element, max_array));
  return json;
}

Json to_json(const gguf::Value& value, size_t max_array) {
  if (value.type == gguf::ValueType::kBool) return std::get<uint64_t>(value.value) != 0;
  return std::visit(
      [&](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, gguf::Array>)
          return to_json(held, max_array);
        else
          return held;
      },
      value.value);
}

// Nothing too for a pack that we cannot read: it is described as the GGUF file that it is.
std::optional<gguf::Pack> read_pack(const gguf::Model& file) {
  Result<std::optional<gguf::Pack>> pack = gguf::Pack::read(file);
  return pack.ok() ? *std::move(pack) : std::nullopt;
}

Json to_json(const gguf::Pack& pack) {
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016" PRIx64, pack.source().xxh3);
  Json layers = Json::array();
  for (const gguf::PackedLayer& layer : pack.layers()) {
    const gguf::MlpShape& shape = layer.layout.shape();
    layers.push_back({{"tiles", layer.layout.n_tiles()},
                      {"tile_neurons", layer.layout.tile_neurons()},
                      {"tile_bytes", layer.layout.tile_bytes()},
                      {"gate", traits(shape.gate).name},
                      {"up", traits(shape.up).name},
                      {"down", traits(shape.down).name}});
  }
  return {{"kind", "exact"},
          {"source", {{"name", pack.source().name}, {"bytes", pack.source().bytes}, {"xxh3", digest}}},
          {"layers", std::move(layers)}};
}

}  // namespace

TensorSummary summarise_tensors(const gguf::Model& file) {
  TensorSummary summary;
  std::map<uint32_t, uint64_t> bytes_of_type;
  const auto add = [&](const gguf::TensorInfo& tensor) {
    summary.parameters += tensor.element_count();
    summary.weight_bytes += tensor.size_bytes;
    bytes_of_type[tensor.type_id] += tensor.size_bytes;
  };
  const std::optional<gguf::Pack> pack = read_pack(file);
  std::set<std::string_view> of_tiles;  // what stands for weights counts as those weights
  if (pack) {
    for (const gguf::PackedLayer& layer : pack->layers()) of_tiles.insert({layer.tiles->name, layer.checksums->name});
    for (const auto& [name, tensor] : pack->replaced()) add(tensor);
  }
  for (const gguf::TensorInfo& tensor : file.tensors())
    if (!of_tiles.contains(tensor.name)) add(tensor);
  const auto most = std::max_element(bytes_of_type.begin(), bytes_of_type.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != bytes_of_type.end()) summary.weight_type = type_name(most->first);
  return summary;
}

std::string describe_json(const gguf::Model& file, size_t max_array) {
  Json files = Json::array();
  for (const File& part : file.files()) files.push_back({{"path", part.path()}, {"bytes", part.size_bytes()}});
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata()) metadata[key] = to_json(value, max_array);
  Json tensors = Json::array();
  for (const gguf::TensorInfo& tensor : file.tensors())
    tensors.push_back({{"name", tensor.name},
                       {"type", type_name(tensor.type_id)},
                       {"dims", tensor.dims},
                       {"bytes", tensor.size_bytes},
                       {"offset", tensor.offset},
                       {"file", tensor.file_index}});
  Json json = {{"files", std::move(files)},
               {"version", file.version()},
               {"alignment", file.alignment()},
               {"metadata", std::move(metadata)},
               {"tensors", std::move(tensors)}};
  if (const std::optional<gguf::Pack> pack = read_pack(file)) json["pack"] = to_json(*pack);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leanstream::runtime
