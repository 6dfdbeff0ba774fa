#include "model/weights.h"

namespace leanstream::model {
namespace {

std::string shape_text(uint64_t cols, uint64_t rows) {
  return "[" + std::to_string(cols) + (rows == 1 ? "" : ", " + std::to_string(rows)) + "]";
}

// Collects the slots of one scope: "" or "blk.7.".
class SlotList {
 public:
  explicit SlotList(std::vector<WeightSlot>& slots) : slots_(slots) {}

  void enter(std::string prefix) { prefix_ = std::move(prefix); }

  void matrix(const char* name, uint64_t rows, uint64_t cols, WeightMatrix& target, bool required = true) {
    slots_.push_back({prefix_ + name, rows, cols, required, &target, nullptr});
  }
  void vector(const char* name, uint64_t length, const float*& target, bool required = true) {
    slots_.push_back({prefix_ + name, 1, length, required, nullptr, &target});
  }

 private:
  std::vector<WeightSlot>& slots_;
  std::string prefix_;
};

void add_layer(const Config& config, LayerWeights& layer, SlotList& list) {
  const uint64_t d_model = config.d_model;
  const uint64_t q_rows = uint64_t{config.n_heads} * config.head_dim;
  const uint64_t kv_rows = uint64_t{config.n_kv_heads} * config.head_dim;
  const bool is_gemma = config.architecture == Architecture::kGemma3;
  const bool has_head_norms = is_gemma || config.architecture == Architecture::kQwen3;

  list.vector("attn_norm.weight", d_model, layer.attn_norm);
  list.matrix("attn_q.weight", q_rows, d_model, layer.q);
  list.matrix("attn_k.weight", kv_rows, d_model, layer.k);
  list.matrix("attn_v.weight", kv_rows, d_model, layer.v);
  const bool bias_required = config.architecture == Architecture::kQwen2;  // elsewhere allowed, and rare
  list.vector("attn_q.bias", q_rows, layer.q_bias, bias_required);
  list.vector("attn_k.bias", kv_rows, layer.k_bias, bias_required);
  list.vector("attn_v.bias", kv_rows, layer.v_bias, bias_required);
  if (has_head_norms) {
    list.vector("attn_q_norm.weight", config.head_dim, layer.q_norm);
    list.vector("attn_k_norm.weight", config.head_dim, layer.k_norm);
  }
  list.matrix("attn_output.weight", d_model, q_rows, layer.o);
  if (is_gemma) list.vector("post_attention_norm.weight", d_model, layer.post_attn_norm);
  list.vector("ffn_norm.weight", d_model, layer.ffn_norm);
  list.matrix("ffn_gate.weight", config.d_ff, d_model, layer.gate);
  list.matrix("ffn_up.weight", config.d_ff, d_model, layer.up);
  list.matrix("ffn_down.weight", d_model, config.d_ff, layer.down);
  if (is_gemma) list.vector("post_ffw_norm.weight", d_model, layer.post_ffn_norm);
}

}  // namespace

std::vector<WeightSlot> weight_slots(const Config& config, Weights& weights) {
  constexpr bool kOptional = false;
  weights.layers.resize(config.n_layers);
  std::vector<WeightSlot> slots;
  SlotList list(slots);
  list.matrix("token_embd.weight", config.n_vocab, config.d_model, weights.token_embedding);
  if (config.architecture == Architecture::kLlama)
    list.vector("rope_freqs.weight", config.ropes[0].n_rot / 2, weights.rope_factors, kOptional);
  for (uint32_t i = 0; i < config.n_layers; ++i) {
    list.enter("blk." + std::to_string(i) + ".");
    add_layer(config, weights.layers[i], list);
  }
  list.enter("");
  list.vector("output_norm.weight", config.d_model, weights.output_norm);
  list.matrix("output.weight", config.n_vocab, config.d_model, weights.output, kOptional);
  return slots;
}

Status check_tensor(const gguf::TensorInfo& tensor, const WeightSlot& slot) {
  const WeightTypeTraits* type = find_weight_type(tensor.type_id);
  if (!type)
    return unsupported("cannot load tensor '" + slot.tensor + "': its type (id " + std::to_string(tensor.type_id) +
                       ") is not supported");
  bool matches = !tensor.dims.empty() && tensor.dims[0] == slot.cols;
  for (size_t i = 1; matches && i < tensor.dims.size(); ++i) matches = tensor.dims[i] == (i == 1 ? slot.rows : 1);
  if (tensor.dims.size() == 1 && slot.rows != 1) matches = false;
  if (!matches) {
    std::string actual;
    for (const uint64_t dim : tensor.dims) actual += (actual.empty() ? "[" : ", ") + std::to_string(dim);
    return malformed("cannot load tensor '" + slot.tensor + "': its shape is " + actual + "], " +
                     shape_text(slot.cols, slot.rows) + " was expected");
  }
  if (slot.cols % type->block_elements != 0)
    return malformed("cannot load tensor '" + slot.tensor + "': its rows of " + std::to_string(slot.cols) +
                     " elements are not whole blocks of " + type->name + " (" + std::to_string(type->block_elements) +
                     " elements)");
  return {};
}

}  // namespace leanstream::model
