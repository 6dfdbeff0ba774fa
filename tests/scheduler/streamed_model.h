#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "engine/decoder.h"
#include "scheduler/stream_plan.h"
#include "scheduler/streamer.h"
#include "tests/engine/loaded_model.h"
#include "tests/model/model_file.h"

namespace leanstream::test {

// A model whose MLP, and attention, are many pieces of kTestPiece bytes: large enough for a ring to be small beside it.
inline TinyShape streamable_shape(WeightType type) {
  TinyShape shape;
  shape.type = type;
  shape.n_layers = 3;
  shape.n_vocab = 300;
  shape.d_model = 512;
  shape.d_ff = 2560;
  shape.n_heads = 8;
  shape.n_kv_heads = 4;
  shape.head_dim = 64;
  return shape;
}
inline constexpr uint32_t kTestPiece = 48 << 10;

// A model file that stays under its name while this lives.
class WrittenModel {
 public:
  explicit WrittenModel(const ModelFile& content)
      : path_(testing::TempDir() + "leanstream-streamed-" + std::to_string(getpid()) + ".gguf") {
    content.write(path_);
  }
  ~WrittenModel() { std::remove(path_.c_str()); }
  WrittenModel(const WrittenModel&) = delete;
  WrittenModel& operator=(const WrittenModel&) = delete;

  const std::string& path() const { return path_; }
  gguf::Model open() const { return must(gguf::Model::open(path_)); }

 private:
  const std::string path_;
};

// Least and most that a plan of this model takes.
struct Range {
  uint64_t least, most;
};
inline constexpr uint32_t kMostThreads = 3;
inline scheduler::StreamPlan plan_for(const gguf::Model& file, const model::Config& config, uint64_t budget) {
  scheduler::StreamPlanParams params;
  params.threads = kMostThreads;
  params.budget_bytes = budget;
  params.piece_bytes = kTestPiece;
  return must(scheduler::plan_stream(file, config, params));
}
inline Range plan_range(const gguf::Model& file, const model::Config& config) {
  return {plan_for(file, config, 0).total_bytes(), plan_for(file, config, UINT64_MAX).total_bytes()};
}

// A model that holds what its plan says and streams the rest.
struct StreamedModel {
  StreamedModel(const gguf::Model& file, scheduler::StreamPlan plan, uint32_t threads, const io::PoolParams& pool = {},
                const scheduler::Streamer::OpenPool& open_pool = io::ReadPool::create)
      : config(must(model::Config::from_gguf(file))),
        team(must(engine::WorkerTeam::create(threads))),
        weights(must(engine::load_weights(file, config, plan.residency, *kernels, *team, nullptr, nullptr))),
        stream(must(scheduler::Streamer::create(file, file.find_tensor("token_embd.weight"), std::move(plan), pool,
                                                open_pool))) {}

  std::unique_ptr<engine::Decoder> decoder(uint32_t context) const {
    engine::DecoderParams params;
    params.context = context;
    params.max_batch = std::min(context, engine::kPromptChunk);
    params.max_logits = 8;
    return must(engine::Decoder::create(config, weights, stream.get(), *kernels, *team, params));
  }

  const kernels::Kernels* const kernels = kernels::select_kernels();
  model::Config config;
  std::unique_ptr<engine::WorkerTeam> team;
  model::Weights weights;
  std::unique_ptr<scheduler::Streamer> stream;
};

}  // namespace leanstream::test
