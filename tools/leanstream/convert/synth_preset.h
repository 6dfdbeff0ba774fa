#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace leanstream::convert {

// The shape of a model to make up.
struct SynthPreset {
  std::string_view name;
  std::string_view architecture;
  uint32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, n_vocab, context_length;
  float rope_freq_base, rms_epsilon;
  bool tied_output = false;
  uint32_t sliding_window = 0;  // gemma3's local layers
};

std::span<const SynthPreset> synth_preset_table();

}  // namespace leanstream::convert
