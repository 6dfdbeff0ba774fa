#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "gguf/pack.h"
#include "model/metadata.h"
#include "model/weights.h"

namespace leanstream::model {
namespace {

// Bounds far beyond any real model: they keep products of sizes within 64 bits and allocations sane.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxWidth = 1u << 20;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxHeadDim = 1024;
constexpr uint32_t kMaxVocab = 1u << 26;
constexpr uint32_t kMaxContext = 1u << 30;

struct ArchitectureName {
  const char* name;
  Architecture architecture;
};
constexpr std::array kArchitectures = {
    ArchitectureName{"llama", Architecture::kLlama},
    ArchitectureName{"qwen2", Architecture::kQwen2},
    ArchitectureName{"qwen3", Architecture::kQwen3},
    ArchitectureName{"gemma3", Architecture::kGemma3},
};

Status read_architecture(const gguf::Model& file, Config& config) {
  const Result<std::optional<std::string>> name = file.find_string("general.architecture");
  if (!name.ok()) return name.status();
  if (!name->has_value()) return malformed("cannot read the model: key 'general.architecture' is missing");
  for (const ArchitectureName& known : kArchitectures)
    if (**name == known.name) {
      config.architecture = known.architecture;
      config.architecture_name = known.name;
      return {};
    }
  return unsupported("cannot run this model: architecture '" + **name +
                     "' is not supported; supported are llama, qwen2, qwen3 and gemma3");
}

// Features that change the result and that we do not compute: refused by name rather than ignored.
Status refuse_unsupported_features(const Metadata& keys) {
  for (const char* name : {"expert_count", "final_logit_softcapping", "attn_logit_softcapping"}) {
    const Result<double> value = keys.number_or(name, 0.0, -1.0, 1e9);
    if (!value.ok()) return value.status();
    if (*value != 0.0)
      return unsupported("cannot run this model: it uses '" + keys.key(name) + "', which is not supported" +
                         (std::string(name) == "expert_count" ? " (mixture of experts)" : ""));
  }
  const Result<std::optional<bool>> causal = keys.flag("attention.causal");
  if (!causal.ok()) return causal.status();
  if (causal->has_value() && !**causal)
    return unsupported("cannot run this model: '" + keys.key("attention.causal") +
                       "' is false, only causal language models are supported");
  return {};
}

// Stores a checked size, or keeps the first error: so that a list of keys reads as a list.
class Fields {
 public:
  template <typename T, typename U>
  void read(U& target, Result<T> value) {
    if (!status_.ok()) return;
    if (value.ok())
      target = static_cast<U>(*value);
    else
      status_ = value.status();
  }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// The embedding's rows, the key and the list of tokens say the same, where they are there.
Status check_vocabulary_size(const gguf::Model& file, const Metadata& keys, uint32_t rows) {
  const std::string of_rows = std::to_string(rows) + " rows of tensor 'token_embd.weight'";
  const Result<uint32_t> named = keys.size_or("vocab_size", rows, 1, UINT32_MAX);
  if (!named.ok()) return named.status();
  if (*named != rows)
    return malformed("cannot read the model's shape: '" + keys.key("vocab_size") + "' is " + std::to_string(*named) +
                     ", which contradicts the " + of_rows);
  const gguf::Value* tokens = file.find("tokenizer.ggml.tokens");
  const gguf::Array* list = tokens != nullptr ? std::get_if<gguf::Array>(&tokens->value) : nullptr;
  if (list != nullptr && list->size() != rows)
    return malformed("cannot read the model's shape: 'tokenizer.ggml.tokens' has " + std::to_string(list->size()) +
                     " tokens, which contradicts the " + of_rows);
  return {};
}

Status read_shape(const gguf::Model& file, const Metadata& keys, Config& config) {
  Fields fields;
  fields.read(config.n_layers, keys.size("block_count", 1, kMaxLayers));
  fields.read(config.d_model, keys.size("embedding_length", 1, kMaxWidth));
  fields.read(config.d_ff, keys.size("feed_forward_length", 1, kMaxWidth));
  fields.read(config.context_length, keys.size("context_length", 1, kMaxContext));
  fields.read(config.n_heads, keys.size("attention.head_count", 1, kMaxHeads));
  fields.read(config.n_kv_heads, keys.size_or("attention.head_count_kv", config.n_heads, 1, kMaxHeads));
  fields.read(config.rms_epsilon, keys.number("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  if (!fields.status().ok()) return fields.status();

  if (config.n_heads % config.n_kv_heads != 0)
    return malformed("cannot read the model's shape: '" + keys.key("attention.head_count") + "' (" +
                     std::to_string(config.n_heads) + ") is not a multiple of '" + keys.key("attention.head_count_kv") +
                     "' (" + std::to_string(config.n_kv_heads) + ")");

  if (!keys.has("attention.key_length") && config.d_model % config.n_heads != 0)
    return malformed("cannot read the model's shape: '" + keys.key("embedding_length") + "' (" +
                     std::to_string(config.d_model) + ") is not a multiple of '" + keys.key("attention.head_count") +
                     "' (" + std::to_string(config.n_heads) + ")");
  uint32_t value_dim = 0;
  fields.read(config.head_dim, keys.size_or("attention.key_length", config.d_model / config.n_heads, 1, kMaxHeadDim));
  fields.read(value_dim, keys.size_or("attention.value_length", config.head_dim, 1, kMaxHeadDim));
  if (!fields.status().ok()) return fields.status();
  if (config.head_dim < 2 || config.head_dim > kMaxHeadDim || config.head_dim % 2 != 0)
    return malformed("cannot read the model's shape: the head size is " + std::to_string(config.head_dim) +
                     ", not an even number up to " + std::to_string(kMaxHeadDim));
  if (value_dim != config.head_dim)
    return unsupported("cannot run this model: '" + keys.key("attention.value_length") + "' (" +
                       std::to_string(value_dim) + ") differs from the key length (" + std::to_string(config.head_dim) +
                       ")");

  const gguf::TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (!embedding) return malformed("cannot load the model: tensor 'token_embd.weight' is missing");
  const uint64_t n_vocab = embedding->dims.size() < 2 ? 0 : embedding->dims[1];
  if (n_vocab < 1 || n_vocab > kMaxVocab)
    return malformed("cannot load the model: tensor 'token_embd.weight' has " + std::to_string(n_vocab) +
                     " rows, not between 1 and " + std::to_string(kMaxVocab));
  config.n_vocab = static_cast<uint32_t>(n_vocab);
  return check_vocabulary_size(file, keys, config.n_vocab);
}

Status read_activation(const Metadata& keys, Config& config) {
  const bool is_gemma = config.architecture == Architecture::kGemma3;
  config.activation = is_gemma ? Activation::kGeluTanh : Activation::kSilu;
  const Result<std::optional<std::string>> name = keys.text("hidden_act");
  if (!name.ok()) return name.status();
  if (!name->has_value()) return {};
  if (is_gemma && (**name == "gelu_pytorch_tanh" || **name == "gelu_tanh")) return {};
  if (!is_gemma && **name == "silu") return {};
  if (!is_gemma && **name == "relu") {
    config.activation = Activation::kRelu;
    return {};
  }
  return unsupported("cannot run this model: '" + keys.key("hidden_act") + "' is '" + **name +
                     "', which is not supported for architecture '" + config.architecture_name + "'");
}

// YaRN grows the magnitude of the rotated vectors with the scaling factor (section 3.4 of the paper).
double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1.0 ? 1.0 : 1.0 + 0.1 * multiplier * std::log(factor);
}

Status read_rope(const Metadata& keys, const Config& config, Rope& rope) {
  const Result<std::optional<std::string>> type = keys.text("rope.scaling.type");
  if (!type.ok()) return type.status();
  const std::string scaling = type->value_or("linear");
  if (scaling != "none" && scaling != "linear" && scaling != "yarn")
    return unsupported("cannot run this model: '" + keys.key("rope.scaling.type") + "' is '" + scaling +
                       "'; supported are none, linear and yarn");
  rope.halves = config.architecture != Architecture::kLlama;

  constexpr double kMaxFactor = 1e6;
  // Older files have scale_linear. A factor of 0 means none.
  const char* factor_key = keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  double factor = 1.0, attn_factor = 1.0, log_multiplier = 0.0;
  Fields fields;
  fields.read(rope.n_rot, keys.size_or("rope.dimension_count", config.head_dim, 1, kMaxHeadDim));
  fields.read(rope.freq_base, keys.number_or("rope.freq_base", 10000.0, 1.0, 1e15));
  fields.read(factor, keys.number_or(factor_key, 1.0, -1e-9, kMaxFactor));
  fields.read(attn_factor, keys.number_or("rope.scaling.attn_factor", 1.0, 0.0, kMaxFactor));
  fields.read(rope.yarn_original_context,
              keys.size_or("rope.scaling.original_context_length", config.context_length, 1, kMaxContext));
  fields.read(rope.yarn_ext_factor, keys.number_or("rope.scaling.yarn_ext_factor", 1.0, -1e-9, 1.0));
  fields.read(rope.yarn_beta_fast, keys.number_or("rope.scaling.yarn_beta_fast", 32.0, 0.0, kMaxFactor));
  fields.read(rope.yarn_beta_slow, keys.number_or("rope.scaling.yarn_beta_slow", 1.0, 0.0, kMaxFactor));
  fields.read(log_multiplier, keys.number_or("rope.scaling.yarn_log_multiplier", 0.0, -1e-9, kMaxFactor));
  if (!fields.status().ok()) return fields.status();
  if (rope.n_rot > config.head_dim || rope.n_rot % 2 != 0)
    return malformed("cannot read the model's shape: '" + keys.key("rope.dimension_count") + "' is " +
                     std::to_string(rope.n_rot) + ", not an even number up to the head size " +
                     std::to_string(config.head_dim));

  if (factor <= 0.0 || scaling == "none") factor = 1.0;
  rope.freq_scale = 1.0 / factor;
  rope.magnitude = attn_factor;
  if (scaling != "yarn") rope.yarn_ext_factor = 0.0;
  if (rope.yarn_ext_factor > 0.0) {
    rope.magnitude *= yarn_magnitude(factor, 1.0);
    if (log_multiplier > 0.0) rope.magnitude /= yarn_magnitude(factor, log_multiplier);
  }
  return {};
}

// Which gemma3 layers see a window only: all but every n-th, or as an array of flags says.
Status read_window_pattern(const Metadata& keys, Config& config, uint32_t window) {
  constexpr const char* kKey = "attention.sliding_window_pattern";
  const gguf::Value* value = keys.find(kKey);
  if (const gguf::Array* array = value ? std::get_if<gguf::Array>(&value->value) : nullptr) {
    const bool flags = array->type == gguf::ValueType::kBool;
    if (!flags || array->size() != config.n_layers)
      return malformed("cannot read the model's shape: '" + keys.key(kKey) + "' has " + std::to_string(array->size()) +
                       " elements of type " + gguf::value_type_name(array->type) + ", " +
                       std::to_string(config.n_layers) + " of bool were expected");
    for (uint32_t i = 0; i < config.n_layers; ++i)
      if (array->unsigneds[i]) config.layers[i] = {window, 1};
    return {};
  }
  const Result<uint32_t> period = keys.size_or(kKey, 6, 1, kMaxLayers);
  if (!period.ok()) return period.status();
  for (uint32_t i = 0; i < config.n_layers; ++i)
    if ((i + 1) % *period != 0) config.layers[i] = {window, 1};
  return {};
}

Status read_layers(const Metadata& keys, Config& config) {
  config.ropes.resize(1);
  if (Status status = read_rope(keys, config, config.ropes[0]); !status.ok()) return status;
  config.layers.assign(config.n_layers, LayerConfig{});
  const Result<uint32_t> window = keys.size_or("attention.sliding_window", 0, 0, kMaxContext);
  if (!window.ok()) return window.status();
  // A Mistral 7B v0.1 file may name its window; the other architectures write one that their models do not use.
  if (config.architecture == Architecture::kLlama)
    for (LayerConfig& layer : config.layers) layer.window = *window;
  if (config.architecture != Architecture::kGemma3 || *window == 0) return {};

  Rope local;  // windowed layers have a base of their own and no scaling
  local.halves = true;
  local.n_rot = config.ropes[0].n_rot;
  const Result<double> base = keys.number_or("rope.freq_base_swa", 10000.0, 1.0, 1e15);
  if (!base.ok()) return base.status();
  local.freq_base = *base;
  config.ropes.push_back(local);
  return read_window_pattern(keys, config, *window);
}

void set_scales(Config& config) {
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  if (config.architecture != Architecture::kGemma3) return;
  config.embedding_scale = std::sqrt(static_cast<float>(config.d_model));
  // The 27B model alone scales by its width per head; no key says so, its depth tells.
  constexpr uint32_t kGemma27bLayers = 62;
  if (config.n_layers == kGemma27bLayers)
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.d_model / config.n_heads));
}

// Old converters kept a copy of the rotary frequencies that the metadata describe anyway.
bool is_harmless(const std::string& tensor) {
  return tensor.find("attn_rot_embd") != std::string::npos;
}

Status check_tensors(const gguf::Model& file, const Config& config) {
  const Result<std::optional<gguf::Pack>> pack = gguf::Pack::read(file);
  if (!pack.ok()) return pack.status();
  Weights unused;
  std::set<std::string, std::less<>> known;
  for (const WeightSlot& slot : weight_slots(config, unused)) {
    const gguf::TensorInfo* tensor = gguf::find_weight(file, *pack, slot.tensor);
    if (!tensor && slot.required) return malformed("cannot load the model: tensor '" + slot.tensor + "' is missing");
    if (!tensor) continue;
    if (Status status = check_tensor(*tensor, slot); !status.ok()) return status;
    known.insert(slot.tensor);
  }
  if (*pack) {
    for (uint32_t i = 0; i < config.n_layers; ++i) known.insert({gguf::tiles_name(i), gguf::checksums_name(i)});
  }
  for (const gguf::TensorInfo& tensor : file.tensors())
    if (!known.contains(tensor.name) && !is_harmless(tensor.name))
      return unsupported("cannot run this model: tensor '" + tensor.name + "' is not known to architecture '" +
                         config.architecture_name + "', and results without it could be wrong");
  return {};
}

}  // namespace

Result<Config> Config::from_gguf(const gguf::Model& file) {
  Config config;
  if (Status status = read_architecture(file, config); !status.ok()) return status;
  const Metadata keys(file, config.architecture_name);
  if (Status status = refuse_unsupported_features(keys); !status.ok()) return status;
  const Result<std::optional<std::string>> name = file.find_string("general.name");
  if (!name.ok()) return name.status();
  config.name = name->value_or("");
  if (Status status = read_shape(file, keys, config); !status.ok()) return status;
  if (Status status = read_activation(keys, config); !status.ok()) return status;
  if (Status status = read_layers(keys, config); !status.ok()) return status;
  set_scales(config);
  if (Status status = check_tensors(file, config); !status.ok()) return status;
  return config;
}

}  // namespace leanstream::model
