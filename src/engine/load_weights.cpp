#include "engine/load_weights.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/checked.h"
#include "base/memory.h"
#include "gguf/pack.h"

namespace leanstream::engine {
namespace {

// What a worker reads at a time: half of a usual L2, so that packing finds the rows still there.
constexpr uint64_t kStagingBytes = 512 << 10;
constexpr uint64_t kAlignment = 64;

// One tensor of the file and where it goes.
struct Placement {
  const gguf::TensorInfo* tensor = nullptr;
  model::WeightSlot slot;
  bool tiled = false;  // the file has it in tiles
  Matrix view;  // the resident rows, as in memory once loaded; data is set when the memory is there
  model::StreamedRows streamed;
  uint64_t offset = 0;  // in the memory, aligned to kAlignment
};

// A layer whose MLP the file has as tiles: they stand for three placements.
struct TiledLayer {
  const gguf::PackedLayer* packed = nullptr;
  uint32_t gate = 0, up = 0, down = 0;  // indices of placements
  std::vector<uint64_t> checksums;      // read just before the tiles are
};

struct Plan {
  std::optional<gguf::Pack> pack;
  std::vector<Placement> placements;
  std::vector<TiledLayer> tiled_layers;
  uint64_t total_bytes = 0;
  bool tied = false;  // no output.weight: the token embedding is the output too
};

uint64_t resident_bytes(const Placement& placement) {
  const Matrix& view = placement.view;
  return placement.slot.vector ? view.cols * sizeof(float) : matrix_bytes(view.type, view.layout, view.rows, view.cols);
}

// Config::from_gguf has checked presence, shapes and types of the same file; checked again here only as far as a
// mismatched pair of arguments could do harm.
Result<Plan> plan_weights(const gguf::Model& file, const model::Config& config, const Residency& residency,
                          model::Weights& weights) {
  Plan plan;
  Result<std::optional<gguf::Pack>> pack = gguf::Pack::read(file);
  if (!pack.ok()) return pack.status();
  plan.pack = *std::move(pack);
  plan.tied = file.find_tensor("output.weight") == nullptr;
  std::vector<model::WeightSlot> slots = model::weight_slots(config, weights);
  for (size_t i = 0; i < slots.size(); ++i) {
    model::WeightSlot& slot = slots[i];
    const gguf::TensorInfo* tensor = gguf::find_weight(file, plan.pack, slot.tensor);
    if (!tensor && slot.required) return malformed("cannot load the model: tensor '" + slot.tensor + "' is missing");
    if (!tensor) continue;
    if (Status status = model::check_tensor(*tensor, slot); !status.ok()) return status;

    const bool tiled = file.find_tensor(slot.tensor) == nullptr;
    Placement placement{tensor, std::move(slot), tiled, {}, {}, plan.total_bytes};
    if (!residency.streamed.empty()) placement.streamed = residency.streamed[i];
    Matrix& view = placement.view;
    view.type = find_weight_type(tensor->type_id)->type;
    view.rows = static_cast<uint32_t>(placement.slot.rows);
    view.cols = static_cast<uint32_t>(placement.slot.cols);
    const bool gathered_only = placement.slot.matrix == &weights.token_embedding && !plan.tied;
    view.layout = placement.slot.vector || gathered_only ? Layout::kFile : Layout::kPanel;
    if (placement.streamed.rows_per_piece != 0) view.rows = placement.streamed.begin;
    if (gathered_only && residency.embedding_by_demand) view.rows = 0;

    const std::optional<uint64_t> end = checked_add(plan.total_bytes, align_up(resident_bytes(placement), kAlignment));
    if (!end) return malformed("cannot load the model: the sizes of its tensors overflow");
    plan.total_bytes = *end;
    plan.placements.push_back(std::move(placement));
  }
  return plan;
}

// Finds where the tiles go, and reads what they are checked against.
Status plan_tiles(const gguf::Model& file, Plan& plan) {
  if (!plan.pack) return {};
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(plan.placements.begin(), plan.placements.end(),
                                    [&](const Placement& p) { return p.tiled && p.tensor->name == name; });
    return static_cast<uint32_t>(found - plan.placements.begin());
  };
  for (uint32_t i = 0; i < plan.pack->layers().size(); ++i) {
    const gguf::PackedLayer& packed = plan.pack->layers()[i];
    TiledLayer layer{&packed, find(gguf::gate_name(i)), find(gguf::up_name(i)), find(gguf::down_name(i)), {}};
    if (std::max({layer.gate, layer.up, layer.down}) == plan.placements.size())
      return malformed("cannot load the model: it has no layer for the tiles of '" + packed.tiles->name + "'");
    Result<std::vector<uint64_t>> checksums = gguf::read_checksums(file, packed);
    if (!checksums.ok()) return checksums.status();
    layer.checksums = *std::move(checksums);
    plan.tiled_layers.push_back(std::move(layer));
  }
  return {};
}

// Rows [begin, end) of one tensor, begin being a multiple of kPanelRows, or a tile of a layer.
struct Task {
  bool is_tile = false;
  uint32_t index = 0;  // of the placement, or of the tiled layer
  uint32_t begin = 0, end = 0;
};

std::vector<Task> split_into_tasks(const Plan& plan) {
  std::vector<Task> tasks;
  for (uint32_t i = 0; i < plan.placements.size(); ++i) {
    if (plan.placements[i].tiled) continue;
    const Matrix& view = plan.placements[i].view;
    const uint64_t panels = std::max<uint64_t>(1, kStagingBytes / panel_bytes(view.type, view.cols));
    const uint64_t step = panels * kPanelRows;
    for (uint64_t row = 0; row < view.rows; row += step)
      tasks.push_back(
          {false, i, static_cast<uint32_t>(row), static_cast<uint32_t>(std::min<uint64_t>(row + step, view.rows))});
  }
  for (uint32_t i = 0; i < plan.tiled_layers.size(); ++i)
    for (uint32_t tile = 0; tile < plan.tiled_layers[i].packed->layout.n_tiles(); ++tile)
      tasks.push_back({true, i, tile, tile + 1});
  return tasks;
}

uint64_t staging_bytes(const Plan& plan) {
  uint64_t bytes = kStagingBytes;
  for (const Placement& placement : plan.placements)
    if (!placement.tiled) bytes = std::max<uint64_t>(bytes, panel_bytes(placement.view.type, placement.view.cols));
  for (const TiledLayer& layer : plan.tiled_layers) bytes = std::max(bytes, layer.packed->layout.tile_bytes());
  return align_up(bytes, kAlignment);
}

// The first failure of several workers.
class FirstError {
 public:
  void set(Status status) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    failed_.store(true, std::memory_order_relaxed);  // a hint to stop early; status() is read after the run
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  const Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  Status status_;
  std::atomic<bool> failed_{false};
};

class Loader {
 public:
  Loader(const gguf::Model& file, const kernels::Kernels& kernels, const Plan& plan, std::byte* memory)
      : file_(file), kernels_(kernels), plan_(plan), memory_(memory), tasks_(split_into_tasks(plan)) {
    for (const Task& task : tasks_) total_bytes_ += file_bytes(task);
  }

  Status run(WorkerTeam& team, bool (*progress)(float, void*), void* progress_user) {
    Result<MappedMemory> staging = MappedMemory::allocate(staging_bytes(plan_) * team.size());
    if (!staging.ok()) return staging.status().with_context("cannot load the model");
    progress_ = progress;
    progress_user_ = progress_user;
    const uint64_t stride = staging_bytes(plan_);
    const bool complete = team.run(
        [&](Worker& worker) {
          std::byte* mine = staging->data() + worker.index() * stride;
          worker.for_each_chunk(static_cast<uint32_t>(tasks_.size()), 1, [&](uint32_t begin, uint32_t) {
            if (error_.failed()) return;
            const Task& task = tasks_[begin];
            Status status = task.is_tile ? load_tile(task, mine) : load_rows(task, mine);
            if (!status.ok()) return error_.set(std::move(status));
            bytes_done_.fetch_add(file_bytes(task), std::memory_order_relaxed);  // for progress only
          });
        },
        [](void* self) { return static_cast<Loader*>(self)->should_stop(); }, this);
    if (error_.failed()) return error_.status();
    const bool finished = complete && (!progress || progress(1.0f, progress_user));
    return finished ? Status() : cancelled("loading the model was cancelled");
  }

 private:
  uint64_t file_bytes(const Task& task) const {
    if (task.is_tile) return plan_.tiled_layers[task.index].packed->layout.tile(task.begin).used_bytes;
    const Matrix& view = plan_.placements[task.index].view;
    return (task.end - task.begin) * row_bytes(view.type, view.cols);
  }

  bool should_stop() {
    if (error_.failed()) return true;
    const double done = static_cast<double>(bytes_done_.load(std::memory_order_relaxed));
    return progress_ && !progress_(static_cast<float>(done / static_cast<double>(total_bytes_)), progress_user_);
  }

  Status load_rows(const Task& task, std::byte* staging) {
    const Placement& placement = plan_.placements[task.index];
    const Matrix& view = placement.view;
    const size_t stride = row_bytes(view.type, view.cols);
    std::byte* target = memory_ + placement.offset;
    const bool as_it_is = placement.slot.matrix && view.layout == Layout::kFile;
    std::byte* rows = as_it_is ? target + task.begin * stride : staging;

    Status status = file_.read_tensor(*placement.tensor, task.begin * stride, {rows, file_bytes(task)});
    if (!status.ok()) return status;
    if (placement.slot.vector) {
      const Matrix row{view.type, Layout::kFile, 1, view.cols, staging};
      kernels_.dequantize_row(row, 0, 1.0f, reinterpret_cast<float*>(target));
    } else if (!as_it_is) {
      pack(task, view, staging, target);
    }
    return {};
  }

  // A tile's matrices are panels already.
  Status load_tile(const Task& task, std::byte* staging) {
    const TiledLayer& layer = plan_.tiled_layers[task.index];
    const gguf::TileLayout& layout = layer.packed->layout;
    const std::span<std::byte> bytes(staging, file_bytes(task));
    Status status = file_.read_tensor(*layer.packed->tiles, layout.tile(task.begin).offset, bytes);
    if (!status.ok()) return status;
    status = gguf::check_tile(file_, *layer.packed, task.begin, bytes, layer.checksums[task.begin]);
    if (!status.ok()) return status;
    const auto target = [&](uint32_t placement) { return memory_ + plan_.placements[placement].offset; };
    layout.copy_to_panels(task.begin, staging, target(layer.gate), target(layer.up), target(layer.down));
    return {};
  }

  void pack(const Task& task, const Matrix& view, const std::byte* rows, std::byte* target) const {
    const size_t stride = row_bytes(view.type, view.cols);
    for (uint32_t row = task.begin; row < task.end; row += kPanelRows)
      kernels_.pack_panel(view.type, view.cols, std::min(kPanelRows, task.end - row),
                          rows + (row - task.begin) * stride, stride,
                          target + row / kPanelRows * panel_bytes(view.type, view.cols));
  }

  const gguf::Model& file_;
  const kernels::Kernels& kernels_;
  const Plan& plan_;
  std::byte* const memory_;
  const std::vector<Task> tasks_;
  uint64_t total_bytes_ = 0;  // of the file, over all tasks
  bool (*progress_)(float, void*) = nullptr;
  void* progress_user_ = nullptr;
  std::atomic<uint64_t> bytes_done_{0};
  FirstError error_;
};

// Points the views of `weights` into its memory.
void attach(const Plan& plan, model::Weights& weights) {
  for (const Placement& placement : plan.placements) {
    const std::byte* data = weights.memory.data() + placement.offset;
    if (placement.slot.vector) {
      *placement.slot.vector = reinterpret_cast<const float*>(data);
    } else {
      model::WeightMatrix& matrix = *placement.slot.matrix;
      matrix.resident = placement.view;
      if (placement.view.rows != 0) matrix.resident.data = data;
      matrix.rows = static_cast<uint32_t>(placement.slot.rows);
      matrix.streamed = placement.streamed;
      if (placement.slot.matrix != &weights.token_embedding || plan.tied)
        weights.bytes_per_token += placement.tensor->size_bytes;
    }
  }
  if (plan.tied) weights.output = weights.token_embedding;
  weights.bytes_per_token += row_bytes(weights.token_embedding.resident.type, weights.token_embedding.resident.cols);
}

}  // namespace

Result<uint64_t> resident_weight_bytes(const gguf::Model& file, const model::Config& config,
                                       const Residency& residency) {
  model::Weights unused;
  const Result<Plan> plan = plan_weights(file, config, residency, unused);
  if (!plan.ok()) return plan.status();
  return plan->total_bytes;
}

Result<model::Weights> load_weights(const gguf::Model& file, const model::Config& config, const Residency& residency,
                                    const kernels::Kernels& kernels, WorkerTeam& team, bool (*progress)(float, void*),
                                    void* progress_user) {
  model::Weights weights;
  Result<Plan> plan = plan_weights(file, config, residency, weights);
  if (!plan.ok()) return plan.status();
  if (Status status = plan_tiles(file, *plan); !status.ok()) return status;
  Result<MappedMemory> memory = MappedMemory::allocate(plan->total_bytes);
  if (!memory.ok()) return memory.status().with_context("cannot load the model");
  weights.memory = std::move(*memory);
  for (const File& part : file.files())
    static_cast<void>(posix_fadvise(part.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL));

  Loader loader(file, kernels, *plan, weights.memory.data());
  if (Status status = loader.run(team, progress, progress_user); !status.ok()) return status;
  attach(*plan, weights);
  return weights;
}

}  // namespace leanstream::engine
