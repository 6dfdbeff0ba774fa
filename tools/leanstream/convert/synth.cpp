#include "tools/leanstream/convert/synth.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "gguf/writer.h"
#include "tools/leanstream/convert/random_weights.h"
#include "tools/leanstream/convert/synth_preset.h"
#include "tools/leanstream/convert/synth_vocab.h"

namespace leanstream::convert {
namespace {

constexpr size_t kChunkBytes = size_t{4} << 20;

struct Tensor {
  std::string name;
  WeightType type;
  std::vector<uint64_t> dims;
  float deviation;  // of its random numbers; 0: all ones
  uint64_t size_bytes() const { return row_bytes(type, dims[0]) * (dims.size() > 1 ? dims[1] : 1); }
};

// The tensors of a preset, in the order of their use.
class TensorList {
 public:
  TensorList(const SynthPreset& preset, WeightType type) : type_(type) {
    matrix("token_embd.weight", preset.n_vocab, preset.d_model);
    for (uint32_t i = 0; i < preset.n_layers; ++i) add_layer(preset, "blk." + std::to_string(i) + ".");
    vector("output_norm.weight", preset.d_model, kOnes);
    if (!preset.tied_output) matrix("output.weight", preset.n_vocab, preset.d_model);
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  static constexpr float kOnes = 0.0f;
  static constexpr float kBiasDeviation = 0.1f;

  void add_layer(const SynthPreset& preset, const std::string& prefix) {
    const bool is_gemma = preset.architecture == "gemma3";
    const uint32_t q_rows = preset.n_heads * preset.head_dim;
    const uint32_t kv_rows = preset.n_kv_heads * preset.head_dim;
    vector(prefix + "attn_norm.weight", preset.d_model, kOnes);
    matrix(prefix + "attn_q.weight", q_rows, preset.d_model);
    matrix(prefix + "attn_k.weight", kv_rows, preset.d_model);
    matrix(prefix + "attn_v.weight", kv_rows, preset.d_model);
    if (preset.architecture == "qwen2") {
      vector(prefix + "attn_q.bias", q_rows, kBiasDeviation);
      vector(prefix + "attn_k.bias", kv_rows, kBiasDeviation);
      vector(prefix + "attn_v.bias", kv_rows, kBiasDeviation);
    }
    if (preset.architecture == "qwen3" || is_gemma) {
      vector(prefix + "attn_q_norm.weight", preset.head_dim, kOnes);
      vector(prefix + "attn_k_norm.weight", preset.head_dim, kOnes);
    }
    matrix(prefix + "attn_output.weight", preset.d_model, q_rows);
    if (is_gemma) vector(prefix + "post_attention_norm.weight", preset.d_model, kOnes);
    vector(prefix + "ffn_norm.weight", preset.d_model, kOnes);
    matrix(prefix + "ffn_gate.weight", preset.d_ff, preset.d_model);
    matrix(prefix + "ffn_up.weight", preset.d_ff, preset.d_model);
    matrix(prefix + "ffn_down.weight", preset.d_model, preset.d_ff);
    if (is_gemma) vector(prefix + "post_ffw_norm.weight", preset.d_model, kOnes);
  }

  // Deviation 1 / sqrt(cols) maps vectors of unit variance to vectors of unit variance, so nothing grows or dies out.
  void matrix(std::string name, uint64_t rows, uint64_t cols) {
    const float deviation = 1.0f / std::sqrt(static_cast<float>(cols));
    tensors_.push_back({std::move(name), fitting_type(type_, cols), {cols, rows}, deviation});
  }
  void vector(std::string name, uint64_t n, float deviation) {
    tensors_.push_back({std::move(name), WeightType::kF32, {n}, deviation});
  }

  WeightType type_;
  std::vector<Tensor> tensors_;
};

void set_metadata(gguf::Writer& writer, const SynthPreset& preset, WeightType type) {
  const std::string architecture(preset.architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  writer.set_string("general.architecture", architecture);
  writer.set_string("general.name", std::string(preset.name) + " shape, random weights");
  writer.set_uint32("general.file_type", file_type_number(type));
  writer.set_uint32("general.quantization_version", 2);
  writer.set_uint32(key("context_length"), preset.context_length);
  writer.set_uint32(key("embedding_length"), preset.d_model);
  writer.set_uint32(key("block_count"), preset.n_layers);
  writer.set_uint32(key("feed_forward_length"), preset.d_ff);
  writer.set_uint32(key("attention.head_count"), preset.n_heads);
  writer.set_uint32(key("attention.head_count_kv"), preset.n_kv_heads);
  writer.set_uint32(key("attention.key_length"), preset.head_dim);
  writer.set_uint32(key("attention.value_length"), preset.head_dim);
  writer.set_float32(key("attention.layer_norm_rms_epsilon"), preset.rms_epsilon);
  writer.set_float32(key("rope.freq_base"), preset.rope_freq_base);
  writer.set_uint32(key("rope.dimension_count"), preset.head_dim);
  writer.set_uint32(key("vocab_size"), preset.n_vocab);
  if (preset.sliding_window != 0) writer.set_uint32(key("attention.sliding_window"), preset.sliding_window);
  if (preset.architecture.starts_with("qwen")) {
    set_bpe_vocabulary(writer, preset.n_vocab);
  } else {
    set_spm_vocabulary(writer, preset.n_vocab, preset.architecture == "llama");
  }
}

// Writes tensors one after another, and counts.
class TensorStream {
 public:
  TensorStream(gguf::Writer& writer, const SynthParams& params)
      : writer_(writer), progress_(params.progress), random_(params.seed), total_bytes_(writer.file_bytes()) {}

  Status write(const Tensor& tensor) {
    const RandomWeights* source = tensor.deviation == 0.0f ? nullptr : &source_of(tensor);
    if (source == nullptr) {
      const std::vector<float> ones(tensor.dims[0], 1.0f);
      return write_chunk(std::as_bytes(std::span(ones)));
    }
    // Chunks hold whole rows, hence whole blocks.
    const uint64_t row = row_bytes(tensor.type, tensor.dims[0]);
    const uint64_t chunk_bytes = std::max<uint64_t>(kChunkBytes / row, 1) * row;
    for (uint64_t left = tensor.size_bytes(); left > 0;) {
      chunk_.resize(std::min(left, chunk_bytes));
      source->fill(random_, chunk_);
      if (Status s = write_chunk(chunk_); !s.ok()) return s;
      left -= chunk_.size();
    }
    return {};
  }

 private:
  const RandomWeights& source_of(const Tensor& tensor) {
    const auto key = std::pair(tensor.type, tensor.deviation);
    const auto found = sources_.find(key);
    if (found != sources_.end()) return found->second;
    return sources_.emplace(key, RandomWeights(tensor.type, tensor.deviation, random_)).first->second;
  }

  Status write_chunk(std::span<const std::byte> bytes) {
    if (Status s = writer_.write_tensor(bytes); !s.ok()) return s;
    done_bytes_ += bytes.size();
    if (progress_ && !progress_(done_bytes_, total_bytes_)) return cancelled("synth was cancelled");
    return {};
  }

  gguf::Writer& writer_;
  const Progress& progress_;
  Random random_;
  uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;
  std::vector<std::byte> chunk_;
  std::map<std::pair<WeightType, float>, RandomWeights> sources_;
};

}  // namespace

std::vector<std::string> synth_presets() {
  std::vector<std::string> names;
  for (const SynthPreset& preset : synth_preset_table()) names.emplace_back(preset.name);
  return names;
}

Result<Report> synth(const SynthParams& params) {
  const std::span<const SynthPreset> table = synth_preset_table();
  const auto preset = std::find_if(table.begin(), table.end(), [&](const auto& p) { return p.name == params.preset; });
  if (preset == table.end()) {
    std::string known;
    for (const std::string& name : synth_presets()) known += (known.empty() ? "" : ", ") + name;
    return invalid_argument("unknown preset '" + params.preset + "': there are " + known);
  }

  gguf::Writer writer;
  set_metadata(writer, *preset, params.type);
  const TensorList list(*preset, params.type);
  Report report;
  for (const Tensor& tensor : list.tensors()) {
    writer.add_tensor(tensor.name, tensor.type, tensor.dims);
    report.parameters += tensor.dims[0] * (tensor.dims.size() > 1 ? tensor.dims[1] : 1);
    if (tensor.dims.size() > 1 && tensor.type != params.type) {
      note_fallback(tensor.dims[0], params.type, tensor.type, report);
    }
  }
  report.file_bytes = writer.file_bytes();
  if (Status s = writer.begin(params.output); !s.ok()) return s;
  TensorStream stream(writer, params);
  for (const Tensor& tensor : list.tensors()) {
    if (Status s = stream.write(tensor); !s.ok()) return s;
  }
  if (Status s = writer.commit(); !s.ok()) return s;
  return report;
}

}  // namespace leanstream::convert
