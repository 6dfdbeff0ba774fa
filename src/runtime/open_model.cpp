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

Status check_chat_family(const std::string& family) {
  if (family.empty()) return {};
  std::string known;
  for (const std::string_view name : model::ChatTemplate::families()) {
    if (name == family) return {};
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return invalid_argument("unknown chat template '" + family + "': the families are " + known);
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

// The rows that loading reads, each once.
uint64_t read_weight_bytes(const scheduler::StreamPlan& plan) {
  uint64_t bytes = 0;
  for (const scheduler::Part& part : {plan.embedding, plan.attention, plan.mlp, plan.output, plan.norms})
    bytes += part.resident_bytes;
  return bytes;
}

// What measuring a drive reads into.
constexpr uint64_t kMeasuringBytes = uint64_t{16} << 20;

}  // namespace

OpenModel::OpenModel(Runtime& runtime, gguf::Model file, LoadMode mode)
    : runtime_(runtime), mode_(mode), file_(std::move(file)), config_(model::Config::from_gguf(file_)) {}

Result<std::unique_ptr<OpenModel>> OpenModel::open(Runtime& runtime, const std::string& path, LoadMode mode,
                                                   const SessionShape& session, Progress progress,
                                                   const std::string& chat_family) {
  const Clock::time_point start = Clock::now();
  if (Status status = check_chat_family(chat_family); !status.ok()) return status;
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
  if (Status status = model->take_memory(session, progress); !status.ok()) return status;
  if (mode != LoadMode::kMetadata)
    if (Status status = model->open_vocabulary(chat_family); !status.ok()) return status;
  if (mode == LoadMode::kFull)
    if (Status status = model->load_weights(progress); !status.ok()) return status;
  if (!report(progress, 1.0f)) return cancelled_by_progress(path);

  model->load_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (mode == LoadMode::kFull) model->log_loaded();
  return model;
}

Status OpenModel::take_memory(const SessionShape& session, Progress progress) {
  MemoryBudget& memory = runtime_.memory();
  const uint64_t head_needs = head_bytes(file_);
  uint64_t weights_needs = 0;
  if (mode_ == LoadMode::kFull) {
    // A model that its session would not fit beside is of no use: refused now, with the numbers.
    const auto stop = [](void* p) { return report(*static_cast<const Progress*>(p), 0.0f) ? 0 : 1; };
    Result<MemoryPlan> planned = plan(session, {stop, &progress});
    if (!planned.ok()) return planned.status();
    if (!planned->fits()) return planned->refusal("open " + path());
    weights_needs = planned->weights_bytes + planned->ring_bytes;
    stream_plan_ = std::move(planned->stream);
  }
  std::optional<MemoryHold> head = memory.take(head_needs);
  std::optional<MemoryHold> weights = head ? memory.take(weights_needs) : std::nullopt;
  if (!weights)
    return out_of_budget("cannot open " + path() + ": its head takes " + format_bytes(head_needs) + ", its weights " +
                         format_bytes(weights_needs) + "; of the budget of " + format_bytes(memory.budget_bytes()) +
                         " " + format_bytes(memory.held_bytes()) + " are held already");
  head_hold_ = *std::move(head);
  weights_hold_ = *std::move(weights);
  return {};
}

Status OpenModel::open_vocabulary(const std::string& chat_family) {
  Result<std::unique_ptr<model::Tokenizer>> tokenizer = model::Tokenizer::from_gguf(file_);
  if (!tokenizer.ok()) return tokenizer.status().with_context("cannot open " + path());
  tokenizer_ = *std::move(tokenizer);
  const auto text_of = [&](model::Token id) { return id < 0 ? std::string() : tokenizer_->piece(id, true); };
  if (!chat_family.empty()) {
    chat_template_ =
        model::ChatTemplate::of_family(chat_family, text_of(tokenizer_->bos()), text_of(tokenizer_->eos()));
    return {};
  }
  const Result<std::optional<std::string>> jinja = file_.find_string("tokenizer.chat_template");
  if (!jinja.ok()) return jinja.status();
  if (*jinja) {
    chat_template_ = model::ChatTemplate::recognise(**jinja, text_of(tokenizer_->bos()), text_of(tokenizer_->eos()));
  }
  return {};
}

Status OpenModel::load_weights(Progress progress) {
  // The loader's own 1 is not the end: opening is done when everything is.
  const auto forward = [](float fraction, void* user) {
    return report(*static_cast<const Progress*>(user), std::min(fraction, 0.999f));
  };
  if (stream_plan_.streams()) {
    // Before the weights are loaded: a file that changes meanwhile is noticed, and the ring fills meanwhile.
    const gguf::TensorInfo* embedding =
        stream_plan_.residency.embedding_by_demand ? file_.find_tensor("token_embd.weight") : nullptr;
    const Result<RequestShape> requests = drive();  // known since the plan
    if (!requests.ok()) return requests.status();
    Result<std::unique_ptr<scheduler::Streamer>> streamer = scheduler::Streamer::create(
        file_, embedding, stream_plan_, pool_params(runtime_.storage(), *requests, runtime_.log()));
    if (!streamer.ok()) return streamer.status().with_context("cannot open " + path());
    streamer_ = *std::move(streamer);
  }
  Result<model::Weights> weights = engine::load_weights(file_, *config_, stream_plan_.residency, runtime_.kernels(),
                                                        runtime_.team(), forward, &progress);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  bytes_read_ += read_weight_bytes(stream_plan_);
  return {};
}

Status OpenModel::check_shape(const SessionShape& shape) const {
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
  return {};
}

Result<MemoryPlan> OpenModel::plan(const SessionShape& shape, AbortHook abort) const {
  if (Status status = check_shape(shape); !status.ok()) return status;
  // What suits the drive is worth a measurement only where something streams.
  Result<MemoryPlan> plan = plan_with(shape, {});
  if (!plan.ok() || weights_ || !plan->stream.streams()) return plan;
  const Result<RequestShape> requests = drive(abort);
  return requests.ok() ? plan_with(shape, *requests) : requests.status();
}

Result<MemoryPlan> OpenModel::plan_with(const SessionShape& shape, const RequestShape& drive) const {
  const MemoryBudget& memory = runtime_.memory();
  PlanRequest request{file_, *config_, shape};
  request.threads = runtime_.team().size();
  request.budget_bytes = memory.budget_bytes();
  request.held_bytes = memory.held_bytes() - head_hold_.bytes() - weights_hold_.bytes();
  request.request_bytes = drive.size_bytes;
  if (weights_) request.loaded = &stream_plan_;
  return plan_memory(request);
}

Result<RequestShape> OpenModel::drive(AbortHook abort) const {
  if (const std::optional<RequestShape> known = runtime_.drives().find(path())) return *known;
  const StorageSettings& settings = runtime_.storage();
  RequestShape shape;
  if (settings.model) {
    shape = request_shape(*settings.model);
  } else if (!settings.state_folder.empty()) {
    const Result<RequestShape> measured = measure_drive(abort);
    if (measured.status().code() == Code::kCancelled) return measured.status().with_context("cannot plan " + path());
    if (measured.ok())
      shape = *measured;
    else
      runtime_.log().warn(measured.status().with_context("the drive is not measured").message());
  }
  runtime_.drives().keep(path(), shape);
  return shape;
}

Result<RequestShape> OpenModel::measure_drive(AbortHook abort) const {
  MemoryBudget& memory = runtime_.memory();
  const std::optional<MemoryHold> hold = memory.take(kMeasuringBytes);
  if (!hold) return out_of_budget("the budget has no " + format_bytes(kMeasuringBytes) + " left to read into");
  const Result<MappedMemory> arena = MappedMemory::allocate(kMeasuringBytes);
  if (!arena.ok()) return arena.status();
  const Result<io::StorageFile> file = io::StorageFile::open(path());
  if (!file.ok()) return file.status();
  const StorageSettings& settings = runtime_.storage();
  const Result<io::StorageCurve> curve = io::load_or_measure(
      settings.state_folder, *file, {arena->data(), arena->size_bytes()}, pool_params(settings, {}, runtime_.log()),
      {[](void* hook) { return static_cast<AbortHook*>(hook)->asks_to_stop(); }, &abort});
  if (!curve.ok()) return curve.status();
  return request_shape(*curve);
}

uint64_t OpenModel::bytes_read() const {
  return bytes_read_ + (streamer_ == nullptr ? 0 : streamer_->counters().bytes_read);
}

void OpenModel::log_loaded() const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f s", load_ms_ / 1000);
  const Log& log = runtime_.log();
  log.info("opened " + path() + ": " + config_->architecture_name + ", " + std::to_string(config_->n_layers) +
           " layers, " + format_bytes(stream_plan_.resident_bytes) + " of weights resident, read in " + seconds);
  if (streamer_ == nullptr) return;
  const io::PoolFacts facts = streamer_->facts();
  log.info("streaming " + format_bytes(stream_plan_.streamed_bytes) + " of weights per token through a ring of " +
           std::to_string(stream_plan_.slots) + " x " + format_bytes(stream_plan_.slot_bytes) + ": " + facts.engine +
           (facts.direct ? ", direct I/O" : ", through the page cache") +
           (facts.registered_buffers ? ", registered buffers" : "") + (facts.huge_pages ? ", huge pages" : ""));
}

}  // namespace leanstream::runtime
