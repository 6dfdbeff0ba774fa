#include "tests/engine/reference_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "kernels/reference/quantize.h"

namespace leanstream::test {
namespace {

std::string in_layer(uint32_t layer, const char* name) {
  return "blk." + std::to_string(layer) + "." + name;
}

void add(std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

double activate(model::Activation activation, double x) {
  switch (activation) {
    case model::Activation::kRelu:
      return std::max(0.0, x);
    case model::Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case model::Activation::kGeluTanh:
      break;
  }
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

ReferenceModel::ReferenceModel(const gguf::Model& file, const model::Config& config) : config_(config) {
  for (const gguf::TensorInfo& info : file.tensors()) {
    std::vector<std::byte> bytes(info.size_bytes);
    if (const Status status = file.read_tensor(info, 0, bytes); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::abort();
    }
    Vector& values = tensors_[info.name];
    values.resize(info.element_count());
    reference::dequantize(find_weight_type(info.type_id)->type, bytes.data(), values.size(), values.data());
  }
  if (!tensors_.contains("output.weight")) tensors_["output.weight"] = tensors_["token_embd.weight"];
}

std::vector<std::vector<float>> ReferenceModel::logits(const std::vector<int32_t>& tokens) const {
  std::vector<Cache> caches(config_.n_layers);
  std::vector<Vector> all;
  for (uint32_t position = 0; position < tokens.size(); ++position) {
    const auto row = tensor("token_embd.weight").begin() + std::ptrdiff_t{tokens[position]} * config_.d_model;
    Vector x(row, row + config_.d_model);
    for (float& value : x) value *= config_.embedding_scale;
    for (uint32_t layer = 0; layer < config_.n_layers; ++layer) {
      const Vector attended = attention(layer, norm(in_layer(layer, "attn_norm"), x), position, caches[layer]);
      add(x, norm(in_layer(layer, "post_attention_norm"), attended));
      const Vector fed = feed_forward(layer, norm(in_layer(layer, "ffn_norm"), x));
      add(x, norm(in_layer(layer, "post_ffw_norm"), fed));
    }
    all.push_back(multiply("output", norm("output_norm", x)));
  }
  return all;
}

ReferenceModel::Vector ReferenceModel::attention(uint32_t layer, const Vector& x, uint32_t position,
                                                 Cache& cache) const {
  const uint32_t dim = config_.head_dim;
  Vector q = multiply(in_layer(layer, "attn_q"), x);
  Vector k = multiply(in_layer(layer, "attn_k"), x);
  norm_and_rotate(layer, "attn_q_norm", position, q);
  norm_and_rotate(layer, "attn_k_norm", position, k);
  cache.keys.push_back(k);
  cache.values.push_back(multiply(in_layer(layer, "attn_v"), x));

  const uint32_t window = config_.layers[layer].window;
  const uint32_t first = window != 0 && position + 1 > window ? position + 1 - window : 0;
  Vector out(q.size());
  for (uint32_t head = 0; head < config_.n_heads; ++head) {
    const uint32_t kv = head / (config_.n_heads / config_.n_kv_heads) * dim;  // where its KV head begins
    std::vector<double> weights;
    for (uint32_t t = first; t <= position; ++t) {
      double score = 0;
      for (uint32_t i = 0; i < dim; ++i) score += double{q[head * dim + i]} * cache.keys[t][kv + i];
      weights.push_back(score * config_.attention_scale);
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (uint32_t i = 0; i < dim; ++i) {
      double value = 0;
      for (uint32_t t = first; t <= position; ++t) value += weights[t - first] * cache.values[t][kv + i];
      out[head * dim + i] = static_cast<float>(value / sum);
    }
  }
  return multiply(in_layer(layer, "attn_output"), out);
}

void ReferenceModel::norm_and_rotate(uint32_t layer, const std::string& norm_name, uint32_t position,
                                     Vector& heads) const {
  const model::Rope& rope = config_.ropes[config_.layers[layer].rope];
  const Vector* factors = find("rope_freqs.weight");
  const uint32_t dim = config_.head_dim, pairs = rope.n_rot / 2;
  for (size_t begin = 0; begin < heads.size(); begin += dim) {
    const auto at = heads.begin() + static_cast<std::ptrdiff_t>(begin);
    Vector head = norm(in_layer(layer, norm_name.c_str()), Vector(at, at + dim));
    for (uint32_t i = 0; i < pairs; ++i) {
      double angle = position * std::pow(rope.freq_base, -2.0 * i / rope.n_rot) * rope.freq_scale;
      if (factors) angle /= (*factors)[i];
      float& a = head[rope.halves ? i : 2 * i];
      float& b = head[rope.halves ? i + pairs : 2 * i + 1];
      const double x = a, y = b;
      a = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
      b = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
    }
    std::copy(head.begin(), head.end(), at);
  }
}

ReferenceModel::Vector ReferenceModel::feed_forward(uint32_t layer, const Vector& x) const {
  Vector hidden = multiply(in_layer(layer, "ffn_gate"), x);
  const Vector up = multiply(in_layer(layer, "ffn_up"), x);
  for (size_t i = 0; i < hidden.size(); ++i)
    hidden[i] = static_cast<float>(activate(config_.activation, hidden[i]) * up[i]);
  return multiply(in_layer(layer, "ffn_down"), hidden);
}

ReferenceModel::Vector ReferenceModel::multiply(const std::string& matrix, const Vector& x) const {
  const Vector& weights = tensor(matrix + ".weight");
  const Vector* bias = find(matrix + ".bias");
  Vector out(weights.size() / x.size());
  for (size_t row = 0; row < out.size(); ++row) {
    double sum = bias ? (*bias)[row] : 0.0;
    for (size_t i = 0; i < x.size(); ++i) sum += double{weights[row * x.size() + i]} * x[i];
    out[row] = static_cast<float>(sum);
  }
  return out;
}

ReferenceModel::Vector ReferenceModel::norm(const std::string& weight, const Vector& x) const {
  const Vector* weights = find(weight + ".weight");
  if (!weights) return x;
  double squares = 0;
  for (const float value : x) squares += double{value} * value;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + config_.rms_epsilon);
  Vector out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = static_cast<float>(x[i] * factor * (*weights)[i]);
  return out;
}

const ReferenceModel::Vector* ReferenceModel::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const ReferenceModel::Vector& ReferenceModel::tensor(const std::string& name) const {
  return tensors_.at(name);
}

}  // namespace leanstream::test
