#include "runtime/open_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/units.h"
#include "engine/load_weights.h"

namespace leanstream::runtime {
namespace {

using Clock = std::chrono::steady_clock;

bool report(const Progress& progress, float fraction) {
  return progress.report == nullptr || progress.report(fraction, progress.user);
}

Status cancelled_by_progress(const std::string& path) {
  return cancelled("cannot open " + path + ": cancelled");
}

// Everything before the first tensor of each file.
uint64_t read_head_bytes(const gguf::Model& file) {
  std::vector<uint64_t> head_ends;
  for (const File& part : file.files()) head_ends.push_back(part.size_bytes());
  for (const gguf::TensorInfo& tensor : file.tensors())
    head_ends[tensor.file_index] = std::min(head_ends[tensor.file_index], tensor.offset);
  uint64_t bytes = 0;
  for (const uint64_t end : head_ends) bytes += end;
  return bytes;
}

// The tensors that loading reads, each once.
uint64_t read_weight_bytes(const gguf::Model& file, const model::Config& config) {
  model::Weights names_only;
  uint64_t bytes = 0;
  for (const model::WeightSlot& slot : model::weight_slots(config, names_only))
    if (const gguf::TensorInfo* tensor = file.find_tensor(slot.tensor)) bytes += tensor->size_bytes;
  return bytes;
}

}  // namespace

OpenModel::OpenModel(Runtime& runtime, gguf::Model file, LoadMode mode)
    : runtime_(runtime), mode_(mode), file_(std::move(file)), config_(model::Config::from_gguf(file_)) {}

Result<std::unique_ptr<OpenModel>> OpenModel::open(Runtime& runtime, const std::string& path, LoadMode mode,
                                                   Progress progress) {
  const Clock::time_point start = Clock::now();
  if (!report(progress, 0.0f)) return cancelled_by_progress(path);
  if (mode == LoadMode::kFull)
    if (Status status = engine::WorkerTeam::check_calling_thread(); !status.ok())
      return status.with_context("cannot open " + path);
  Result<gguf::Model> file = gguf::Model::open(path);
  if (!file.ok()) return file.status();

  std::unique_ptr<OpenModel> model(new OpenModel(runtime, *std::move(file), mode));
  if (mode == LoadMode::kFull && !model->config_.ok())
    return model->config_.status().with_context("cannot run " + path);
  model->bytes_read_ = read_head_bytes(model->file_);
  if (Status status = model->take_memory(); !status.ok()) return status;
  if (mode != LoadMode::kMetadata)
    if (Status status = model->open_vocabulary(); !status.ok()) return status;
  if (mode == LoadMode::kFull)
    if (Status status = model->load_weights(progress); !status.ok()) return status;
  if (!report(progress, 1.0f)) return cancelled_by_progress(path);

  model->load_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (mode == LoadMode::kFull) model->log_loaded();
  return model;
}

Status OpenModel::take_memory() {
  MemoryBudget& memory = runtime_.memory();
  ModelNeeds needs;
  needs.head_bytes = head_bytes(file_);
  if (mode_ == LoadMode::kFull) {
    // A model that no session would fit beside is of no use: refused now, with the numbers of the smallest session.
    SessionShape smallest;
    smallest.context = std::min(kContextStep, config_->context_length);
    const Result<MemoryPlan> least = plan(smallest);
    if (!least.ok()) return least.status();
    if (!least->fits()) return least->refusal("open " + path());
    needs.weights_bytes = least->weights_bytes;
  }
  std::optional<MemoryHold> head = memory.take(needs.head_bytes);
  std::optional<MemoryHold> weights = head ? memory.take(needs.weights_bytes) : std::nullopt;
  if (!weights)
    return out_of_budget("cannot open " + path() + ": its head takes " + format_bytes(needs.head_bytes) +
                         ", its weights " + format_bytes(needs.weights_bytes) + "; of the budget of " +
                         format_bytes(memory.budget_bytes()) + " " + format_bytes(memory.held_bytes()) +
                         " are held already");
  head_hold_ = *std::move(head);
  weights_hold_ = *std::move(weights);
  return {};
}

Status OpenModel::open_vocabulary() {
  Result<std::unique_ptr<model::Tokenizer>> tokenizer = model::Tokenizer::from_gguf(file_);
  if (!tokenizer.ok()) return tokenizer.status().with_context("cannot open " + path());
  tokenizer_ = *std::move(tokenizer);
  const Result<std::optional<std::string>> jinja = file_.find_string("tokenizer.chat_template");
  if (!jinja.ok()) return jinja.status();
  const auto text_of = [&](model::Token id) { return id < 0 ? std::string() : tokenizer_->piece(id, true); };
  if (*jinja) {
    chat_template_ =
        model::ChatTemplate::recognise(**jinja, text_of(tokenizer_->bos()), text_of(tokenizer_->eos()));
  }
  return {};
}

Status OpenModel::load_weights(Progress progress) {
  // The loader's own 1 is not the end: opening is done when everything is.
  const auto forward = [](float fraction, void* user) {
    return report(*static_cast<const Progress*>(user), std::min(fraction, 0.999f));
  };
  Result<model::Weights> weights =
      engine::load_weights(file_, *config_, runtime_.kernels(), runtime_.team(), forward, &progress);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  bytes_read_ += read_weight_bytes(file_, *config_);
  return {};
}

Result<MemoryPlan> OpenModel::plan(const SessionShape& shape) const {
  if (!config_.ok()) return config_.status().with_context("cannot run " + path());
  if (shape.context > config_->context_length)
    return invalid_argument("cannot have a context of " + std::to_string(shape.context) + " positions: " + path() +
                            " was trained for " + std::to_string(config_->context_length));
  if (shape.max_logits < 1 || shape.max_logits > engine::kMaxLogits)
    return invalid_argument("cannot keep logits of " + std::to_string(shape.max_logits) +
                            " positions: max_logits goes from 1 to " + std::to_string(engine::kMaxLogits));
  if (shape.kv_type == kernels::KvType::kQ8_0 && config_->head_dim % 32 != 0)
    return unsupported("cannot keep the KV cache of " + path() + " as Q8_0: its head_dim " +
                       std::to_string(config_->head_dim) + " is no multiple of 32");
  const Result<ModelNeeds> needs = model_needs(file_, *config_, runtime_.team().size());
  if (!needs.ok()) return needs.status();
  const MemoryBudget& memory = runtime_.memory();
  const uint64_t held_by_others = memory.held_bytes() - head_hold_.bytes() - weights_hold_.bytes();
  return plan_memory(*config_, *needs, shape, memory.budget_bytes(), held_by_others);
}

void OpenModel::log_loaded() const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f s", load_ms_ / 1000);
  runtime_.log().info("opened " + path() + ": " + config_->architecture_name + ", " +
                      std::to_string(config_->n_layers) + " layers, " + format_bytes(weights_hold_.bytes()) +
                      " of weights resident, read in " + seconds);
}

}  // namespace leanstream::runtime
