#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.h"
#include "commands.h"
#include "model_options.h"
#include "output.h"
#include "text.h"

namespace leanstream::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  ModelOptions model;
  bool json = false;
  uint32_t max_array = 8;
};

// Vocabulary facts where the vocabulary can be read; any well-formed file can be looked at without it.
Result<Model> open_for_looking(leanstream_runtime& runtime, const std::string& path) {
  Result<Model> model = open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  if (model.ok() || model.status().code() == Code::kNotFound) return model;
  log_debug("no vocabulary: " + model.status().message());
  return open_model(runtime, path, LEANSTREAM_LOAD_METADATA);
}

Json info_object(const leanstream_model_info& info) {
  return {
      {"architecture", info.architecture},
      {"name", info.name},
      {"weight_type", info.weight_type},
      {"file_bytes", info.file_bytes},
      {"parameters", info.parameters},
      {"weight_bytes", info.weight_bytes},
      {"n_layers", info.n_layers},
      {"d_model", info.d_model},
      {"d_ff", info.d_ff},
      {"n_heads", info.n_heads},
      {"n_kv_heads", info.n_kv_heads},
      {"head_dim", info.head_dim},
      {"n_vocab", info.n_vocab},
      {"context_length", info.context_length},
      {"bos", info.bos},
      {"eos", info.eos},
      {"adds_bos", info.adds_bos != 0},
      {"chat_family", info.chat_family},
  };
}

std::string token_id(leanstream_token token) {
  return token < 0 ? "none" : std::to_string(token);
}

// "Q4_0 225 (3.6 GiB), F32 65 (1.0 MiB)", the largest first.
std::string tensor_types(const Json& tensors) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> by_type;  // count, bytes
  for (const Json& tensor : tensors) {
    auto& [count, bytes] = by_type[tensor.at("type").get<std::string>()];
    ++count;
    bytes += tensor.at("bytes").get<uint64_t>();
  }
  std::multimap<uint64_t, std::string, std::greater<>> by_bytes;
  for (const auto& [type, sum] : by_type)
    by_bytes.emplace(sum.second, formatted("%s x %llu (%s)", type.c_str(), static_cast<unsigned long long>(sum.first),
                                           format_bytes(sum.second).c_str()));
  std::string text;
  for (const auto& [bytes, line] : by_bytes) text += (text.empty() ? "" : ", ") + line;
  return text;
}

// "288 tiles of 32 neurons in 216 KiB", for each kind of layer.
std::vector<std::string> tile_lines(const Json& pack) {
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> tiles;  // neurons and bytes of a tile: how many
  for (const Json& layer : pack.at("layers"))
    tiles[{layer.at("tile_neurons").get<uint64_t>(), layer.at("tile_bytes").get<uint64_t>()}] +=
        layer.at("tiles").get<uint64_t>();
  std::vector<std::string> lines;
  for (const auto& [size, count] : tiles)
    lines.push_back(std::to_string(count) + " tiles of " + std::to_string(size.first) + " neurons in " +
                    format_bytes(size.second));
  return lines;
}

std::string table(const leanstream_model_info& info, const Json& file) {
  std::string text;
  const auto row = [&](const char* label, const std::string& value) {
    text += formatted("%-15s", label) + value + "\n";
  };
  for (const Json& part : file.at("files"))
    row(text.empty() ? "file" : "",
        part.at("path").get<std::string>() + ", " + format_bytes(part.at("bytes").get<uint64_t>()));
  row("format",
      formatted("GGUF version %d, alignment %d", file.at("version").get<int>(), file.at("alignment").get<int>()));
  if (const auto pack = file.find("pack"); pack != file.end()) {
    const Json& source = pack->at("source");
    row("pack", pack->at("kind").get<std::string>() + ", of " + source.at("name").get<std::string>() + " (" +
                    format_bytes(source.at("bytes").get<uint64_t>()) + ", XXH3 " +
                    source.at("xxh3").get<std::string>() + ")");
    for (const std::string& line : tile_lines(*pack)) row("", line);
  }
  row("name", info.name);
  row("architecture", info.architecture);
  row("parameters", formatted("%.2f million", static_cast<double>(info.parameters) / 1e6));
  row("tensors", tensor_types(file.at("tensors")));
  if (info.n_layers > 0) {
    row("layers", formatted("%u of width %u, MLP %u", info.n_layers, info.d_model, info.d_ff));
    row("attention", formatted("%u heads of %u, %u KV heads", info.n_heads, info.head_dim, info.n_kv_heads));
    row("context", formatted("%u positions", info.context_length));
  } else {
    row("runs here", "no: this architecture is not supported");
  }
  if (info.n_vocab > 0)
    row("vocabulary", formatted("%u tokens, BOS %s%s, EOS %s", info.n_vocab, token_id(info.bos).c_str(),
                                info.adds_bos ? " (added)" : "", token_id(info.eos).c_str()));
  row("chat template", info.chat_family[0] ? info.chat_family : "none that is known");
  return text;
}

int look(const InfoOptions& options) {
  if (options.model.model.empty()) return report_usage("no model: give its file");
  if (const Status log = start_log(options.model.log, {options.model.model}); !log.ok()) return report_failure(log);
  const Result<Runtime> runtime = create_runtime(options.model);
  if (!runtime.ok()) return report_failure(runtime.status());
  const Result<Model> model = open_for_looking(**runtime, options.model.model);
  if (!model.ok()) return report_failure(model.status());
  const Result<leanstream_model_info> info = model_info(**model);
  if (!info.ok()) return report_failure(info.status());
  const Result<std::string> description =
      filled<std::string>([&](char* buffer, size_t capacity, size_t* needed, leanstream_error* error) {
        return leanstream_model_describe(model->get(), options.max_array, buffer, capacity, needed, error);
      });
  if (!description.ok()) return report_failure(description.status());

  const Json file = Json::parse(*description, nullptr, false);
  StandardOutput out;
  if (options.json) {
    Json json = {{"info", info_object(*info)}};
    json.update(file);
    out.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    out.write(table(*info, file));
  }
  return out.exit_code();
}

}  // namespace

Command info_command() {
  auto options = std::make_shared<InfoOptions>();
  options->model.threads = 1;
  const auto add_flags = [options](Flags& flags) {
    flags.positional("MODEL", options->model.model, "GGUF file; of a split set, its first part");
    flags.text("-m,--model", "FILE", options->model.model, "The same");
    flags.flag("--json", options->json, "One JSON object: info, files, metadata, tensors");
    flags.number("--max-array", "N", options->max_array, 0, UINT32_MAX,
                 "In JSON, give longer arrays by type and length only;\n0 = give all (default 8)");
    add_log_options(flags, options->model.log);
    flags.footer("  leanstream info model.gguf\n  leanstream info model.gguf --json | jq .info.context_length");
  };
  return {"info", "Say what is in a model file", add_flags, [options] { return look(*options); }};
}

}  // namespace leanstream::cli
