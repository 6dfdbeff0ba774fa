#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "gguf/reader.h"

namespace leanstream::model {

enum class Architecture { kLlama, kQwen2, kQwen3, kGemma3 };

enum class Activation { kSilu, kGeluTanh, kRelu };

// How positions turn into rotation angles for one kind of layer. Pair i of position p turns by
// p * freq_base^(-2i / n_rot) * freq_scale; YaRN leaves the fast pairs unscaled (model/rope.h).
struct Rope {
  bool halves = false;  // pairs (i, i + n_rot/2), else (2i, 2i+1)
  uint32_t n_rot = 0;   // elements of a head that rotate, even
  double freq_base = 10000.0;
  double freq_scale = 1.0;       // 1 / scaling factor
  double magnitude = 1.0;        // cosines and sines are multiplied by it
  double yarn_ext_factor = 0.0;  // YaRN (arXiv 2309.00071): 0 = off, 1 = all of it
  double yarn_beta_fast = 32.0;  // turns within the original context: pairs with more are left alone,
  double yarn_beta_slow = 1.0;   // pairs with fewer are scaled, a ramp between
  uint32_t yarn_original_context = 0;
};

struct LayerConfig {
  uint32_t window = 0;  // positions a query sees, itself included; 0 = all
  uint32_t rope = 0;    // index into Config::ropes
};

// The shape of a model and the constants of its arithmetic, read from a file's metadata and checked: every size is
// consistent with every other and with the tensors that exist. A value type.
struct Config {
  Architecture architecture = Architecture::kLlama;
  std::string architecture_name;  // as in the file
  std::string name;
  uint32_t n_layers = 0, d_model = 0, d_ff = 0, n_vocab = 0;
  uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  uint32_t context_length = 0;
  float rms_epsilon = 1e-5f;
  float embedding_scale = 1.0f;
  float attention_scale = 0.0f;
  Activation activation = Activation::kSilu;
  std::vector<Rope> ropes;
  std::vector<LayerConfig> layers;  // [n_layers]

  // Errors: kUnsupported for an architecture, or a feature of it, that we do not run, by name (the architecture before
  // anything else is looked at); kMalformed for a missing, mistyped, absurd or inconsistent key or tensor, naming it.
  static Result<Config> from_gguf(const gguf::Model& file);
};

}  // namespace leanstream::model
