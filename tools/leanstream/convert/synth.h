#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tools/leanstream/convert/convert.h"

namespace leanstream::convert {

struct SynthParams {
  std::string preset;  // one of synth_presets()
  WeightType type = WeightType::kQ4_0;
  std::string output;
  uint64_t seed = 1;
  Progress progress = {};  // may be empty
};

// "mistral-7b", "llama2-7b", "qwen2.5-7b", and small ones for tests: "tiny", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3".
std::vector<std::string> synth_presets();

// Writes a valid GGUF model of the preset's shape with random weights: for measuring speed, never quality. The
// vocabulary is made up here and encodes any text. The same parameters give the same file, on any machine.
// Errors: kInvalidArgument for an unknown preset, kIo as Writer's.
Result<Report> synth(const SynthParams& params);

}  // namespace leanstream::convert
