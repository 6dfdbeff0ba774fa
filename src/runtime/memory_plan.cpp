#include "runtime/memory_plan.h"

#include <algorithm>

#include "base/checked.h"
#include "base/memory.h"
#include "base/units.h"
#include "engine/load_weights.h"
#include "gguf/pack.h"
#include "model/weights.h"

namespace leanstream::runtime {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Hash nodes and records that a tokenizer keeps per token and per merge, beside the text itself. With it the head and
// vocabulary of seven files, from 32,000 tokens to 262,144, took between 65 and 90 % of what is set aside for them.
constexpr uint64_t kTokenRecordBytes = 48;

// What a loading worker reads into before it interleaves rows: this much, or one panel of rows.
constexpr uint64_t kLeastStagingBytes = kMiB / 2;

// Sampling: a candidate list and a sorted copy, per vocabulary entry.
constexpr uint64_t kSamplerBytesPerToken = 24;

// What reading the drive takes beside the ring: threads or rings, queues, and where io_uring keeps its requests.
constexpr uint64_t kReadersBytes = 4 * kMiB;

// A mapping's last huge page may be touched as a whole.
uint64_t mapped(uint64_t bytes) {
  return align_up(bytes, MappedMemory::kAlignment);
}

// glibc: 16 bytes of alignment, 8 of header; short strings live inside the object.
uint64_t heap_bytes(const std::string& text) {
  return text.size() < 16 ? 0 : align_up(text.size() + 9, 16);
}

uint64_t text_bytes(const gguf::StringList& strings) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < strings.size(); ++i) bytes += strings[i].size();
  return bytes;
}

uint64_t heap_bytes(const gguf::Array& array) {
  uint64_t bytes = 8 * (array.unsigneds.capacity() + array.signeds.capacity() + array.floats.capacity()) +
                   sizeof(size_t) * array.strings.size() + text_bytes(array.strings) +
                   sizeof(gguf::Array) * array.arrays.capacity();
  for (const gguf::Array& inner : array.arrays) bytes += heap_bytes(inner);
  return bytes;
}

uint64_t heap_bytes(const gguf::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.value)) return heap_bytes(*text);
  if (const auto* array = std::get_if<gguf::Array>(&value.value)) return heap_bytes(*array);
  return 0;
}

// Look-up tables over the vocabulary: beside its text, hash nodes and per-token records.
uint64_t tokenizer_bytes(const gguf::Model& file) {
  uint64_t bytes = 0;
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    const gguf::Value* value = file.find(key);
    const auto* array = value == nullptr ? nullptr : std::get_if<gguf::Array>(&value->value);
    if (array == nullptr) continue;
    bytes += array->strings.size() * kTokenRecordBytes + text_bytes(array->strings);
  }
  return bytes;
}

// Of tiles one is read at a time, of other matrices a panel of rows.
uint64_t staging_bytes(const gguf::Model& file, const std::optional<gguf::Pack>& pack, uint32_t threads) {
  uint64_t most = kLeastStagingBytes;
  const auto is_tiles = [&](const gguf::TensorInfo& tensor) {
    return pack && std::any_of(pack->layers().begin(), pack->layers().end(),
                               [&](const gguf::PackedLayer& layer) { return layer.tiles == &tensor; });
  };
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const uint64_t row = tensor.size_bytes / (tensor.element_count() / tensor.dims[0]);
    most = std::max(most, is_tiles(tensor) ? row : row * kPanelRows);
  }
  return mapped(most * threads);
}

// Every matrix once; of an embedding that is not also the output, one row.
uint64_t bytes_per_token(const gguf::Model& file, const std::optional<gguf::Pack>& pack, const model::Config& config) {
  model::Weights names_only;
  const bool tied = file.find_tensor("output.weight") == nullptr;
  uint64_t bytes = 0;
  for (const model::WeightSlot& slot : model::weight_slots(config, names_only)) {
    const gguf::TensorInfo* tensor = gguf::find_weight(file, pack, slot.tensor);
    if (tensor == nullptr) continue;
    const bool is_table = slot.matrix == &names_only.token_embedding;
    if (slot.matrix != nullptr && (!is_table || tied)) bytes += tensor->size_bytes;
    if (is_table) bytes += tensor->size_bytes / slot.rows;
  }
  return bytes;
}

}  // namespace

uint64_t head_bytes(const gguf::Model& file) {
  constexpr uint64_t kIndexNodeBytes = 96;  // a std::map node with its key
  uint64_t bytes = tokenizer_bytes(file);
  for (const auto& [key, value] : file.metadata())
    bytes += sizeof(std::pair<std::string, gguf::Value>) + kIndexNodeBytes + 2 * heap_bytes(key) + heap_bytes(value);
  for (const gguf::TensorInfo& tensor : file.tensors())
    bytes += sizeof tensor + kIndexNodeBytes + 2 * heap_bytes(tensor.name) + 8 * tensor.dims.capacity() + 16;
  return bytes;
}

ModelNeeds model_needs(const gguf::Model& file, const model::Config& config, uint32_t threads) {
  ModelNeeds needs;
  needs.threads = threads;
  needs.head_bytes = head_bytes(file);
  const Result<std::optional<gguf::Pack>> read = gguf::Pack::read(file);  // model::Config has read it before
  const std::optional<gguf::Pack> pack = read.ok() ? *read : std::nullopt;
  needs.staging_bytes = staging_bytes(file, pack, threads);
  needs.bytes_per_token = bytes_per_token(file, pack, config);
  return needs;
}

engine::DecoderParams decoder_params(const SessionShape& shape) {
  engine::DecoderParams params;
  params.context = shape.context;
  params.kv_type = shape.kv_type;
  params.max_batch = std::min(shape.context, engine::kPromptChunk);
  params.max_logits = shape.max_logits;
  return params;
}

SessionNeeds session_needs(const model::Config& config, const SessionShape& shape, uint32_t threads) {
  const engine::DecoderParams params = decoder_params(shape);
  SessionNeeds needs;
  needs.kv_bytes = mapped(engine::Decoder::kv_bytes(config, params));
  needs.buffers_bytes = mapped(engine::Decoder::scratch_bytes(config, params, threads)) +
                        config.n_vocab * kSamplerBytesPerToken + shape.context * sizeof(int32_t);
  return needs;
}

uint64_t MemoryPlan::least_budget_bytes() const {
  return align_up(least_bytes + kMiB, kMiB);
}

Status MemoryPlan::refusal(const std::string& what) const {
  return out_of_budget(
      "cannot " + what + ": it takes " + format_bytes(total_bytes()) + " (weights " + format_bytes(weights_bytes) +
      (ring_bytes == 0 ? "" : ", a ring for streamed ones " + format_bytes(ring_bytes)) + ", KV cache " +
      format_bytes(kv_bytes) + " for " + std::to_string(context) + " positions, buffers " +
      format_bytes(buffers_bytes) + ", held already " + format_bytes(fixed_bytes) + ") and the budget is " +
      format_bytes(budget_bytes) + "; the least that works is " + std::to_string(least_budget_bytes() / kMiB) + "M (" +
      std::to_string(least_budget_bytes()) + " bytes)");
}

namespace {

// Plans of one model for different contexts.
class Planner {
 public:
  explicit Planner(const PlanRequest& request)
      : request_(request), needs_(model_needs(request.file, request.config, request.threads)) {}

  Result<MemoryPlan> plan(uint32_t context) const {
    SessionShape sized = request_.shape;
    sized.context = context;
    const SessionNeeds session = session_needs(request_.config, sized, needs_.threads);
    MemoryPlan plan;
    plan.kv_bytes = session.kv_bytes;
    plan.buffers_bytes = needs_.head_bytes + std::max(session.buffers_bytes, needs_.staging_bytes);
    plan.fixed_bytes = request_.held_bytes;
    plan.budget_bytes = request_.budget_bytes;
    plan.context = context;
    plan.bytes_per_token = needs_.bytes_per_token;

    const uint64_t others = plan.total_bytes();
    Result<scheduler::StreamPlan> least = plan_weights(others, others);
    if (!least.ok()) return least.status();
    set_weights(*std::move(least), plan);
    plan.least_bytes = plan.total_bytes();
    if (request_.loaded == nullptr && plan.total_bytes() >= plan.budget_bytes) return plan;

    Result<scheduler::StreamPlan> weights =
        request_.loaded != nullptr ? *request_.loaded : plan_weights(plan.budget_bytes, others);
    if (!weights.ok()) return weights.status();
    set_weights(*std::move(weights), plan);
    return plan;
  }

 private:
  // Of a budget of which others take some. What streaming takes beside the ring is unknown before it is known that
  // something streams.
  Result<scheduler::StreamPlan> plan_weights(uint64_t budget, uint64_t others) const {
    scheduler::StreamPlanParams params;
    params.piece_bytes = request_.request_bytes;
    params.threads = request_.threads;
    params.budget_bytes = budget - others;
    Result<scheduler::StreamPlan> plan = scheduler::plan_stream(request_.file, request_.config, params);
    if (!plan.ok() || !plan->streams() || params.budget_bytes < kReadersBytes) return plan;
    params.budget_bytes -= kReadersBytes;
    return scheduler::plan_stream(request_.file, request_.config, params);
  }

  static void set_weights(scheduler::StreamPlan stream, MemoryPlan& plan) {
    plan.weights_bytes = mapped(stream.resident_bytes);
    plan.ring_bytes = stream.streams() ? stream.total_bytes() - plan.weights_bytes + kReadersBytes : 0;
    plan.stream = std::move(stream);
  }

  const PlanRequest& request_;
  const ModelNeeds needs_;
};

// The largest context below `most` for which `good` holds, in steps; it holds for all smaller ones too. Nothing where
// it holds for none.
template <typename Good>
Result<std::optional<MemoryPlan>> largest_context(const Planner& planner, uint32_t most, Good&& good) {
  std::optional<MemoryPlan> best;
  uint32_t low = 1, high = (most - 1) / kContextStep;
  while (low <= high) {
    const uint32_t middle = low + (high - low) / 2;
    Result<MemoryPlan> plan = planner.plan(middle * kContextStep);
    if (!plan.ok()) return plan.status();
    if (good(*plan)) {
      best = *std::move(plan);
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

}  // namespace

Result<MemoryPlan> plan_memory(const PlanRequest& request) {
  const Planner planner(request);
  if (request.shape.context != 0) return planner.plan(request.shape.context);
  const auto fits = [](const MemoryPlan& plan) { return plan.fits(); };
  const auto fits_resident = [](const MemoryPlan& plan) { return plan.fits() && !plan.stream.streams(); };
  const auto fits_streamed = [](const MemoryPlan& plan) {
    return plan.fits() && plan.kv_bytes <= plan.budget_bytes / kStreamedKvShare;
  };

  const uint32_t most = std::min(request.config.context_length, kDefaultContext);
  Result<MemoryPlan> whole = planner.plan(most);
  if (!whole.ok() || fits_resident(*whole) || fits_streamed(*whole) || most <= kContextStep) return whole;
  Result<std::optional<MemoryPlan>> resident = largest_context(planner, most, fits_resident);
  if (!resident.ok()) return resident.status();
  if (*resident && (*resident)->context >= kLeastWorthwhileContext) return **std::move(resident);
  Result<std::optional<MemoryPlan>> found = largest_context(planner, most, fits_streamed);
  if (found.ok() && !*found) found = largest_context(planner, most, fits);
  if (!found.ok()) return found.status();
  return *found ? Result<MemoryPlan>(**std::move(found)) : planner.plan(kContextStep);
}

}  // namespace leanstream::runtime
