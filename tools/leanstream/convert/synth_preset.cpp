#include "tools/leanstream/convert/synth_preset.h"

#include <array>

namespace leanstream::convert {
namespace {

constexpr uint32_t kTinyVocab = 2048;

// The tiny ones have rows of 256 elements, whole blocks of every type; qwen3's and gemma3's heads are wider than
// d_model / n_heads, as the real ones' are; gemma3 has a global layer, its sixth, and a window shorter than its
// context.
constexpr auto kPresets = std::to_array<SynthPreset>({
    // name, architecture, layers, d, ff, heads, kv heads, head dim, vocabulary, context, rope base, epsilon
    {"mistral-7b", "llama", 32, 4096, 14336, 32, 8, 128, 32000, 32768, 1e6f, 1e-5f},
    {"llama2-7b", "llama", 32, 4096, 11008, 32, 32, 128, 32000, 4096, 1e4f, 1e-5f},
    {"qwen2.5-7b", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, 1e6f, 1e-6f},
    {"tiny", "llama", 4, 256, 768, 4, 2, 64, kTinyVocab, 2048, 1e4f, 1e-5f},
    {"tiny-qwen2", "qwen2", 4, 256, 768, 4, 2, 64, kTinyVocab, 2048, 1e6f, 1e-6f},
    {"tiny-qwen3", "qwen3", 4, 256, 768, 6, 2, 64, kTinyVocab, 2048, 1e6f, 1e-6f, true},
    {"tiny-gemma3", "gemma3", 7, 256, 768, 2, 1, 128, kTinyVocab, 2048, 1e6f, 1e-6f, true, 64},
});

}  // namespace

std::span<const SynthPreset> synth_preset_table() {
  return kPresets;
}

}  // namespace leanstream::convert
