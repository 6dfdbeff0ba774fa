#include "engine/load_weights.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/checked.h"
#include "base/memory.h"

namespace leanstream::engine {
namespace {

// What a worker reads at a time: half of a usual L2, so that packing finds the rows still there.
constexpr uint64_t kStagingBytes = 512 << 10;
constexpr uint64_t kAlignment = 64;

// One tensor of the file and where it goes.
struct Placement {
  const gguf::TensorInfo* tensor = nullptr;
  model::WeightSlot slot;
  Matrix view;  // the resident rows, as in memory once loaded; data is set when the memory is there
  model::StreamedRows streamed;
  uint64_t offset = 0;  // in the memory, aligned to kAlignment
};

struct Plan {
  std::vector<Placement> placements;
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
  plan.tied = file.find_tensor("output.weight") == nullptr;
  std::vector<model::WeightSlot> slots = model::weight_slots(config, weights);
  for (size_t i = 0; i < slots.size(); ++i) {
    model::WeightSlot& slot = slots[i];
    const gguf::TensorInfo* tensor = file.find_tensor(slot.tensor);
    if (!tensor && slot.required) return malformed("cannot load the model: tensor '" + slot.tensor + "' is missing");
    if (!tensor) continue;
    if (Status status = model::check_tensor(*tensor, slot); !status.ok()) return status;

    Placement placement{tensor, std::move(slot), {}, {}, plan.total_bytes};
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

// Rows [begin, end) of one tensor; begin is a multiple of kPanelRows.
struct Task {
  uint32_t placement = 0;
  uint32_t begin = 0, end = 0;
};

std::vector<Task> split_into_tasks(const Plan& plan) {
  std::vector<Task> tasks;
  for (uint32_t i = 0; i < plan.placements.size(); ++i) {
    const Matrix& view = plan.placements[i].view;
    const uint64_t panels = std::max<uint64_t>(1, kStagingBytes / panel_bytes(view.type, view.cols));
    const uint64_t step = panels * kPanelRows;
    for (uint64_t row = 0; row < view.rows; row += step)
      tasks.push_back(
          {i, static_cast<uint32_t>(row), static_cast<uint32_t>(std::min<uint64_t>(row + step, view.rows))});
  }
  return tasks;
}

uint64_t staging_bytes(const Plan& plan) {
  uint64_t bytes = kStagingBytes;
  for (const Placement& placement : plan.placements)
    bytes = std::max<uint64_t>(bytes, panel_bytes(placement.view.type, placement.view.cols));
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
            if (!error_.failed()) load(tasks_[begin], mine);
          });
        },
        [](void* self) { return static_cast<Loader*>(self)->should_stop(); }, this);
    if (error_.failed()) return error_.status();
    const bool finished = complete && (!progress || progress(1.0f, progress_user));
    return finished ? Status() : cancelled("loading the model was cancelled");
  }

 private:
  uint64_t file_bytes(const Task& task) const {
    const Matrix& view = plan_.placements[task.placement].view;
    return (task.end - task.begin) * row_bytes(view.type, view.cols);
  }

  bool should_stop() {
    if (error_.failed()) return true;
    const double done = static_cast<double>(bytes_done_.load(std::memory_order_relaxed));
    return progress_ && !progress_(static_cast<float>(done / static_cast<double>(total_bytes_)), progress_user_);
  }

  void load(const Task& task, std::byte* staging) {
    const Placement& placement = plan_.placements[task.placement];
    const Matrix& view = placement.view;
    const size_t stride = row_bytes(view.type, view.cols);
    const uint64_t bytes = file_bytes(task);
    std::byte* target = memory_ + placement.offset;
    const bool as_it_is = placement.slot.matrix && view.layout == Layout::kFile;
    std::byte* rows = as_it_is ? target + task.begin * stride : staging;

    Status status = file_.read_tensor(*placement.tensor, task.begin * stride, {rows, bytes});
    if (!status.ok()) return error_.set(std::move(status));
    if (placement.slot.vector) {
      const Matrix row{view.type, Layout::kFile, 1, view.cols, staging};
      kernels_.dequantize_row(row, 0, 1.0f, reinterpret_cast<float*>(target));
    } else if (!as_it_is) {
      pack(task, view, staging, target);
    }
    bytes_done_.fetch_add(bytes, std::memory_order_relaxed);  // for progress only
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
  const Result<Plan> plan = plan_weights(file, config, residency, weights);
  if (!plan.ok()) return plan.status();
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
