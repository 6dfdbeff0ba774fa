#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/decoder.h"
#include "engine/load_weights.h"
#include "gguf/reader.h"
#include "tests/must.h"

namespace leanstream::test {

// A model file, loaded, with a team to run it.
struct LoadedModel {
  LoadedModel(const gguf::Model& file, uint32_t threads, const kernels::Kernels* with = kernels::select_kernels())
      : kernels(with),
        config(must(model::Config::from_gguf(file))),
        team(must(engine::WorkerTeam::create(threads))),
        weights(must(engine::load_weights(file, config, {}, *kernels, *team, nullptr, nullptr))) {}

  std::unique_ptr<engine::Decoder> decoder(engine::DecoderParams params) const {
    return must(engine::Decoder::create(config, weights, nullptr, *kernels, *team, params));
  }

  const kernels::Kernels* kernels;
  model::Config config;
  std::unique_ptr<engine::WorkerTeam> team;
  model::Weights weights;
};

// Logits of every position of `tokens`, taken `batch` at a time from the decoder's position on, and projected `rows` at
// a time.
inline std::vector<std::vector<float>> all_logits(engine::Decoder& decoder, uint32_t n_vocab,
                                                  const std::vector<int32_t>& tokens, uint32_t batch,
                                                  uint32_t rows = 1) {
  std::vector<std::vector<float>> all;
  for (size_t begin = 0; begin < tokens.size(); begin += batch) {
    const uint32_t count = static_cast<uint32_t>(std::min<size_t>(batch, tokens.size() - begin));
    EXPECT_TRUE(decoder.forward({tokens.data() + begin, count}, nullptr, nullptr).ok());
    for (uint32_t first = 0; first < count; first += rows) {
      const uint32_t n = std::min(rows, count - first);
      EXPECT_TRUE(decoder.project(first, n, nullptr, nullptr).ok());
      for (uint32_t i = 0; i < n; ++i) all.emplace_back(decoder.logits(i), decoder.logits(i) + n_vocab);
    }
  }
  return all;
}

}  // namespace leanstream::test
