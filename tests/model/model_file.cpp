#include "tests/model/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/abi/half.h"
#include "kernels/reference/blocks.h"

namespace leanstream::test {
namespace {

using Random = std::mt19937;

// Small numbers around 0 (matrices), or around 1 (norms).
float random_number(Random& random, bool around_one) {
  const float centred = static_cast<float>(random() % 4096) / 4096.0f - 0.5f;
  return around_one ? 1.0f + 0.5f * centred : 0.25f * centred;
}

void append(std::vector<std::byte>& bytes, const void* data, size_t size) {
  const std::byte* first = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + size);
}

// Any bytes are a valid block; then its scales are set so that the numbers are small and centred.
void append_block(std::vector<std::byte>& bytes, WeightType type, Random& random) {
  const WeightTypeTraits& t = traits(type);
  std::vector<std::byte> raw(t.block_bytes);
  for (std::byte& b : raw) b = static_cast<std::byte>(random());
  reference::Block block = reference::unpack_block(type, raw.data());
  double largest = 1e-3, mean = 0, mean_min = 0;
  for (uint32_t i = 0; i < t.block_elements; ++i) {
    const uint32_t group = i / reference::group_elements(type);
    const double product = double{1} * block.scale[group] * block.q[i];
    largest = std::max(largest, std::fabs(product));
    mean += product / t.block_elements;
    mean_min += double{1} * block.min[group] / t.block_elements;
  }
  const bool has_min = block.dmin != 0.0f;
  block.d = half_to_float(float_to_half(static_cast<float>(0.2 / largest)));
  block.dmin =
      has_min && mean_min != 0 ? half_to_float(float_to_half(static_cast<float>(block.d * mean / mean_min))) : 0.0f;
  std::fill(raw.begin(), raw.end(), std::byte{0});
  reference::pack_block(type, block, raw.data());
  append(bytes, raw.data(), raw.size());
}

std::vector<std::byte> random_tensor(const ModelFile::Tensor& tensor, const std::string& name) {
  Random random(static_cast<uint32_t>(std::hash<std::string>()(name)));
  uint64_t elements = 1;
  for (const uint64_t dim : tensor.dims) elements *= dim;
  const bool around_one = name.find("norm") != std::string::npos || name.find("freqs") != std::string::npos;
  std::vector<std::byte> bytes;
  const uint32_t block = traits(tensor.type).block_elements;
  for (uint64_t i = 0; i < elements; i += block) {
    if (tensor.type == WeightType::kF32) {
      const float value = random_number(random, around_one);
      append(bytes, &value, sizeof value);
    } else if (is_float(tensor.type)) {
      const float value = random_number(random, around_one);
      const uint16_t bits = tensor.type == WeightType::kF16 ? float_to_half(value) : float_to_bfloat16(value);
      append(bytes, &bits, sizeof bits);
    } else {
      append_block(bytes, tensor.type, random);
    }
  }
  return bytes;
}

}  // namespace

ModelFile::ModelFile(const TinyShape& s) : prefix_(s.architecture + ".") {
  const bool gemma = s.architecture == "gemma3";
  set("general.architecture", {gguf::ValueType::kString, s.architecture});
  set("general.name", {gguf::ValueType::kString, std::string("tiny")});
  set_number("block_count", s.n_layers).set_number("embedding_length", s.d_model);
  set_number("feed_forward_length", s.d_ff).set_number("context_length", 512);
  set_number("attention.head_count", s.n_heads).set_number("attention.head_count_kv", s.n_kv_heads);
  set_number("attention.key_length", s.head_dim).set_number("attention.value_length", s.head_dim);
  set_float("attention.layer_norm_rms_epsilon", 1e-5f);

  const uint64_t q_width = uint64_t{s.n_heads} * s.head_dim, kv_width = uint64_t{s.n_kv_heads} * s.head_dim;
  const auto vector = [&](const std::string& name, uint64_t n) { set_tensor(name, WeightType::kF32, {n}); };
  set_tensor("token_embd.weight", s.type, {s.d_model, s.n_vocab});
  if (!s.tied) set_tensor("output.weight", s.type, {s.d_model, s.n_vocab});
  vector("output_norm.weight", s.d_model);
  for (uint32_t i = 0; i < s.n_layers; ++i) {
    const std::string blk = "blk." + std::to_string(i) + ".";
    for (const char* norm : {"attn_norm", "ffn_norm"}) vector(blk + norm + ".weight", s.d_model);
    set_tensor(blk + "attn_q.weight", s.type, {s.d_model, q_width});
    set_tensor(blk + "attn_k.weight", s.type, {s.d_model, kv_width});
    set_tensor(blk + "attn_v.weight", s.type, {s.d_model, kv_width});
    set_tensor(blk + "attn_output.weight", s.type, {q_width, s.d_model});
    set_tensor(blk + "ffn_gate.weight", s.type, {s.d_model, s.d_ff});
    set_tensor(blk + "ffn_up.weight", s.type, {s.d_model, s.d_ff});
    set_tensor(blk + "ffn_down.weight", s.type, {s.d_ff, s.d_model});
    if (s.architecture == "qwen2") {
      vector(blk + "attn_q.bias", q_width);
      vector(blk + "attn_k.bias", kv_width);
      vector(blk + "attn_v.bias", kv_width);
    }
    if (gemma || s.architecture == "qwen3")
      for (const char* norm : {"attn_q_norm", "attn_k_norm"}) vector(blk + norm + ".weight", s.head_dim);
    if (gemma)
      for (const char* norm : {"post_attention_norm", "post_ffw_norm"}) vector(blk + norm + ".weight", s.d_model);
  }
}

ModelFile& ModelFile::set_number(const std::string& key, uint32_t value) {
  return set(prefix_ + key, {gguf::ValueType::kUint32, uint64_t{value}});
}
ModelFile& ModelFile::set_float(const std::string& key, float value) {
  return set(prefix_ + key, {gguf::ValueType::kFloat32, double{value}});
}
ModelFile& ModelFile::set_text(const std::string& key, const std::string& value) {
  return set(prefix_ + key, {gguf::ValueType::kString, value});
}
ModelFile& ModelFile::set_numbers(const std::string& key, const std::vector<int32_t>& values) {
  gguf::Array array;
  array.type = gguf::ValueType::kInt32;
  array.signeds.assign(values.begin(), values.end());
  return set(prefix_ + key, {gguf::ValueType::kArray, array});
}
ModelFile& ModelFile::set(const std::string& full_key, gguf::Value value) {
  keys_.insert_or_assign(full_key, std::move(value));
  return *this;
}
ModelFile& ModelFile::drop_key(const std::string& key) {
  keys_.erase(prefix_ + key);
  return *this;
}
ModelFile& ModelFile::set_tensor(const std::string& name, WeightType type, std::vector<uint64_t> dims) {
  tensors_.insert_or_assign(name, Tensor{type, std::move(dims)});
  return *this;
}
ModelFile& ModelFile::drop_tensor(const std::string& name) {
  tensors_.erase(name);
  return *this;
}

std::string ModelFile::write(const std::string& path) const {
  gguf::Writer writer;
  for (const auto& [key, value] : keys_) writer.set(key, value);
  for (const auto& [name, tensor] : tensors_) writer.add_tensor(name, tensor.type, tensor.dims);
  const auto expect_ok = [](const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); };
  expect_ok(writer.begin(path));
  for (const auto& [name, tensor] : tensors_) expect_ok(writer.write_tensor(random_tensor(tensor, name)));
  expect_ok(writer.commit());
  return path;
}

gguf::Model ModelFile::open() const {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string path = testing::TempDir() + "leanstream-" + info->test_suite_name() + "-" + info->name() + "-" +
                     std::to_string(getpid()) + ".gguf";
  for (char& c : path)
    if (c == '/' && &c >= path.data() + testing::TempDir().size()) c = '-';
  write(path);
  Result<gguf::Model> model = gguf::Model::open(path);
  std::remove(path.c_str());  // stays readable through its descriptor
  if (!model.ok()) {
    ADD_FAILURE() << model.status().message();
    std::abort();
  }
  return std::move(*model);
}

}  // namespace leanstream::test
