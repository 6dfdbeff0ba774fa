#include "scheduler/stream_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/checked.h"
#include "base/memory.h"
#include "engine/load_weights.h"
#include "gguf/pack.h"

namespace leanstream::scheduler {
namespace {

// Fewer slots than this would leave the drive idle while compute works.
constexpr uint32_t kLeastSlots = 8;

constexpr uint64_t kCacheLineBytes = 64;

uint64_t mapped(uint64_t bytes) {
  return align_up(bytes, MappedMemory::kAlignment);
}

uint64_t whole_pages(uint64_t bytes) {
  return bytes / MappedMemory::kAlignment * MappedMemory::kAlignment;
}

// A matrix that may be split, as the file has it.
struct Source {
  size_t slot = 0;  // of model::weight_slots()
  const gguf::TensorInfo* tensor = nullptr;
  uint32_t rows = 0;
  uint64_t row_bytes = 0;

  uint64_t bytes() const { return rows * row_bytes; }
};

// Matrices that are split alike, and streamed in turn: gate and up; each other one alone.
struct Group {
  std::vector<Source> members;

  uint32_t rows() const { return members.front().rows; }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Source& each : members) sum += each.bytes();
    return sum;
  }
  // Of kPanelRows rows of all members.
  uint64_t panel_bytes() const {
    uint64_t sum = 0;
    for (const Source& each : members) sum += kPanelRows * each.row_bytes;
    return sum;
  }
};

struct Layer {
  std::vector<Group> attention, mlp;  // in the order of their use
};

struct Shape {
  std::vector<Layer> layers;
  size_t n_slots = 0;
  bool tied = false;
  uint64_t embedding_bytes = 0, output_bytes = 0, norms_bytes = 0, attention_bytes = 0, mlp_bytes = 0;
};

Shape read_shape(const gguf::Model& file, const std::optional<gguf::Pack>& pack, const model::Config& config) {
  model::Weights names;
  const std::vector<model::WeightSlot> slots = model::weight_slots(config, names);
  Shape shape;
  shape.n_slots = slots.size();
  shape.tied = file.find_tensor("output.weight") == nullptr;
  const auto source = [&](const model::WeightMatrix& matrix) {
    const auto slot =
        std::find_if(slots.begin(), slots.end(), [&](const model::WeightSlot& s) { return s.matrix == &matrix; });
    const gguf::TensorInfo* tensor = gguf::find_weight(file, pack, slot->tensor);
    return Source{static_cast<size_t>(slot - slots.begin()), tensor, static_cast<uint32_t>(slot->rows),
                  tensor->size_bytes / slot->rows};
  };
  const auto group = [&](std::initializer_list<const model::WeightMatrix*> matrices) {
    Group made;
    for (const model::WeightMatrix* matrix : matrices) made.members.push_back(source(*matrix));
    return made;
  };
  for (const model::LayerWeights& w : names.layers) {
    Layer layer{{group({&w.q}), group({&w.k}), group({&w.v}), group({&w.o})},
                {group({&w.gate, &w.up}), group({&w.down})}};
    for (const Group& each : layer.attention) shape.attention_bytes += each.bytes();
    for (const Group& each : layer.mlp) shape.mlp_bytes += each.bytes();
    shape.layers.push_back(std::move(layer));
  }
  for (const model::WeightSlot& slot : slots) {
    const gguf::TensorInfo* tensor = file.find_tensor(slot.tensor);
    if (tensor == nullptr) continue;
    if (slot.vector != nullptr) shape.norms_bytes += tensor->size_bytes;
    if (slot.matrix == &names.token_embedding)
      (shape.tied ? shape.output_bytes : shape.embedding_bytes) = tensor->size_bytes;
    if (slot.matrix == &names.output) shape.output_bytes = tensor->size_bytes;
  }
  return shape;
}

// Splits groups so that of each about the same fraction is resident, and never more than `budget` of all.
class Splitter {
 public:
  Splitter(uint64_t budget_bytes, uint64_t total_bytes)
      : fraction_(total_bytes == 0
                      ? 1.0
                      : std::min(1.0, static_cast<double>(budget_bytes) / static_cast<double>(total_bytes))) {}

  uint32_t resident_rows(const Group& group) {
    if (fraction_ >= 1.0) return group.rows();
    carry_ += fraction_ * static_cast<double>(group.bytes());
    const auto panels = static_cast<uint32_t>(carry_ / static_cast<double>(group.panel_bytes()));
    const uint32_t rows = std::min(panels * kPanelRows, group.rows());
    carry_ -= static_cast<double>(rows / kPanelRows) * static_cast<double>(group.panel_bytes());
    return rows;
  }

 private:
  const double fraction_;
  double carry_ = 0;  // bytes that whole panels left over
};

// Cuts the rows from `begin` on into pieces of one length and appends them to the plan, members in turn.
void stream_rows(const Group& group, uint32_t begin, uint32_t piece_bytes, StreamPlan& plan) {
  if (begin >= group.rows()) return;
  uint64_t widest = 0;
  for (const Source& each : group.members) widest = std::max(widest, each.row_bytes);
  const uint32_t left = group.rows() - begin;
  const uint64_t most_rows = std::max<uint64_t>(piece_bytes / widest / kPanelRows, 1) * kPanelRows;
  const uint64_t count = ceil_div(left, most_rows);
  const auto rows_per_piece = static_cast<uint32_t>(align_up(ceil_div(left, count), kPanelRows));

  const auto step = static_cast<uint32_t>(group.members.size());
  const auto first = static_cast<uint32_t>(plan.pieces.size());
  for (uint32_t m = 0; m < step; ++m)
    plan.residency.streamed[group.members[m].slot] = {begin, rows_per_piece, first + m, step};
  for (uint32_t row = begin; row < group.rows(); row += rows_per_piece)
    for (const Source& each : group.members) {
      const uint32_t rows = std::min(rows_per_piece, group.rows() - row);
      const auto size = static_cast<uint32_t>(rows * each.row_bytes);
      plan.pieces.push_back({each.tensor->file_index, each.tensor->offset + row * each.row_bytes, size});
      plan.streamed_bytes += size;
    }
  // The aligned superset of the longest piece that any split of this group gives, beginning anywhere in a block.
  const uint64_t longest = std::min<uint64_t>(most_rows, align_up(group.rows(), kPanelRows)) * widest;
  plan.slot_bytes = std::max(plan.slot_bytes, align_up(longest, kSlotAlignment) + kSlotAlignment);
}

struct Fractions {
  uint64_t attention_bytes = 0, mlp_bytes = 0;  // budgets
};

StreamPlan split(const Shape& shape, const Fractions& budgets, const StreamPlanParams& params) {
  StreamPlan plan;
  plan.residency.streamed.resize(shape.n_slots);
  plan.residency.embedding_by_demand = !shape.tied;
  Splitter attention(budgets.attention_bytes, shape.attention_bytes), mlp(budgets.mlp_bytes, shape.mlp_bytes);
  for (const Layer& layer : shape.layers) {
    for (const Group& group : layer.attention)
      stream_rows(group, attention.resident_rows(group), params.piece_bytes, plan);
    for (const Group& group : layer.mlp) stream_rows(group, mlp.resident_rows(group), params.piece_bytes, plan);
  }
  return plan;
}

void count_parts(const Shape& shape, StreamPlan& plan) {
  plan.norms = {shape.norms_bytes, shape.norms_bytes};
  plan.output = {shape.output_bytes, shape.output_bytes};
  plan.embedding = {shape.embedding_bytes, plan.residency.embedding_by_demand ? 0 : shape.embedding_bytes};
  const auto count = [&](const std::vector<Group>& groups, Part& part) {
    for (const Group& group : groups)
      for (const Source& each : group.members) {
        const bool split = !plan.residency.streamed.empty() && plan.residency.streamed[each.slot].rows_per_piece != 0;
        part.bytes += each.bytes();
        part.resident_bytes += split ? plan.residency.streamed[each.slot].begin * each.row_bytes : each.bytes();
      }
  };
  for (const Layer& layer : shape.layers) {
    count(layer.attention, plan.attention);
    count(layer.mlp, plan.mlp);
  }
}

}  // namespace

uint64_t StreamPlan::total_bytes() const {
  return mapped(resident_bytes) + mapped(ring_bytes()) + mapped(workspace_bytes);
}

Result<StreamPlan> plan_stream(const gguf::Model& file, const model::Config& config, const StreamPlanParams& params) {
  const Result<uint64_t> everything = engine::resident_weight_bytes(file, config);
  if (!everything.ok()) return everything.status();
  const Result<std::optional<gguf::Pack>> pack = gguf::Pack::read(file);
  if (!pack.ok()) return pack.status();
  const Shape shape = read_shape(file, *pack, config);
  StreamPlan plan;
  plan.resident_bytes = *everything;
  count_parts(shape, plan);
  if (plan.total_bytes() <= params.budget_bytes || *pack) return plan;  // tiles are no rows: a pack is resident

  // A slot takes the pieces of any split.
  const StreamPlan nothing = split(shape, {}, params);
  const Result<uint64_t> fixed = engine::resident_weight_bytes(file, config, nothing.residency);
  if (!fixed.ok()) return fixed.status();
  // Each matrix that has resident rows begins on a cache line of its own; both mappings are whole huge pages.
  const uint64_t least_resident = mapped(*fixed + shape.n_slots * kCacheLineBytes);
  const uint64_t workspace = 2 * params.threads * nothing.slot_bytes;
  const uint64_t least = least_resident + mapped(workspace);
  const uint64_t room = whole_pages(params.budget_bytes - std::min(params.budget_bytes, least));
  const uint64_t ring_share = std::min({params.most_ring_bytes, params.budget_bytes / 8, room});
  const uint64_t slots = std::max<uint64_t>(ring_share / nothing.slot_bytes, kLeastSlots);
  const uint64_t ring = mapped(slots * nothing.slot_bytes);
  const uint64_t left = room - std::min(room, ring);
  Fractions budgets;
  budgets.attention_bytes = std::min(left, shape.attention_bytes);
  budgets.mlp_bytes = left - budgets.attention_bytes;
  StreamPlan streamed = split(shape, budgets, params);
  streamed.slot_bytes = streamed.pieces.empty() ? 0 : nothing.slot_bytes;
  streamed.slots = streamed.pieces.empty() ? 0 : static_cast<uint32_t>(slots);
  streamed.workspace_bytes = streamed.pieces.empty() ? 0 : workspace;
  const Result<uint64_t> resident = engine::resident_weight_bytes(file, config, streamed.residency);
  if (!resident.ok()) return resident.status();
  streamed.resident_bytes = *resident;
  count_parts(shape, streamed);
  // Of a small model the ring takes more than the model.
  return streamed.total_bytes() < plan.total_bytes() ? streamed : plan;
}

}  // namespace leanstream::scheduler
