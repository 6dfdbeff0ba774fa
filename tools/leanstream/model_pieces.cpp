#include "model_pieces.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "handles.h"
#include "model_options.h"
#include "text.h"

namespace leanstream::cli {
namespace {

// Bytes of every tensor of the file, by name.
Result<std::map<std::string, uint64_t>> tensor_bytes(const leanstream_model& model) {
  const Result<std::string> description =
      filled<std::string>([&](char* buffer, size_t capacity, size_t* needed, leanstream_error* error) {
        return leanstream_model_describe(&model, 1, buffer, capacity, needed, error);
      });
  if (!description.ok()) return description.status();
  std::map<std::string, uint64_t> bytes;
  const nlohmann::json json = nlohmann::json::parse(*description, nullptr, false);
  for (const auto& tensor : json.at("tensors")) bytes[tensor.at("name")] = tensor.at("bytes");
  return bytes;
}

}  // namespace

Result<trace::Header> model_pieces(const std::string& path, uint32_t neurons_per_piece) {
  ModelOptions machine;
  machine.threads = 1;
  const Result<Runtime> runtime = create_runtime(machine);
  if (!runtime.ok()) return runtime.status();
  const Result<Model> model = open_model(**runtime, path, LEANSTREAM_LOAD_METADATA);
  if (!model.ok()) return model.status();
  const Result<leanstream_model_info> info = model_info(**model);
  if (!info.ok()) return info.status();
  const Result<std::map<std::string, uint64_t>> bytes = tensor_bytes(**model);
  if (!bytes.ok()) return bytes.status();
  if (info->n_layers == 0 || info->d_ff == 0)
    return unsupported("cannot tell the neurons of " + path + " apart: its architecture is not one that runs here");

  trace::Header header;
  header.model = info->name;
  header.pieces = neurons_per_piece == 1 ? "neuron" : formatted("tile of %u neurons", neurons_per_piece);
  header.selection = "all";
  const uint32_t whole = info->d_ff / neurons_per_piece, rest = info->d_ff % neurons_per_piece;
  for (uint32_t layer = 0; layer < info->n_layers; ++layer) {
    uint64_t mlp = 0;
    for (const char* matrix : {"gate", "up", "down"}) {
      const auto tensor = bytes->find(formatted("blk.%u.ffn_%s.weight", layer, matrix));
      if (tensor == bytes->end())
        return unsupported(formatted("cannot tell the neurons of %s apart: layer %u has no %s matrix of its own",
                                     path.c_str(), layer, matrix));
      mlp += tensor->second;
    }
    const auto piece_bytes = [&](uint32_t neurons) {
      return static_cast<uint32_t>(std::min<uint64_t>(ceil_div(mlp * neurons, info->d_ff), UINT32_MAX));
    };
    std::vector<trace::SizeRun> runs;
    if (whole > 0) runs.push_back({whole, piece_bytes(neurons_per_piece)});
    if (rest > 0) runs.push_back({1, piece_bytes(rest)});
    header.layers.push_back(std::move(runs));
  }
  return header;
}

}  // namespace leanstream::cli
