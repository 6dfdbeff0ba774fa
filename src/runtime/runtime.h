#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/worker_team.h"
#include "kernels/cpu/kernels.h"
#include "runtime/log.h"
#include "runtime/memory_budget.h"
#include "runtime/storage.h"

namespace leanstream::runtime {

struct RuntimeParams {
  uint64_t memory_budget_bytes = 0;  // 0 = default_budget_bytes()
  uint32_t threads = 0;              // 0 = usable_cpu_count()
  std::optional<std::string> simd;   // a name of kernels::all_kernels(); nothing = the best
  StorageSettings storage;
  Log log;
};

// What all models and sessions of a process share: the compute threads, the SIMD target, the memory budget and the log.
// Thread-safe; outlives its models.
class Runtime {
 public:
  // Errors: kInvalidArgument (threads above kMaxThreads), kUnsupported (no such simd), kOutOfBudget, kIo.
  static Result<std::unique_ptr<Runtime>> create(const RuntimeParams& params);

  const kernels::Kernels& kernels() const { return kernels_; }
  engine::WorkerTeam& team() const { return *team_; }
  MemoryBudget& memory() const { return *memory_; }
  const StorageSettings& storage() const { return storage_; }
  DriveCache& drives() const { return *drives_; }
  const Log& log() const { return log_; }
  const std::string& device_name() const { return device_name_; }

 private:
  Runtime(const kernels::Kernels& kernels, std::unique_ptr<engine::WorkerTeam> team,
          std::unique_ptr<MemoryBudget> memory, StorageSettings storage, Log log);

  const kernels::Kernels& kernels_;
  const std::unique_ptr<engine::WorkerTeam> team_;
  const std::unique_ptr<MemoryBudget> memory_;
  const StorageSettings storage_;
  const std::unique_ptr<DriveCache> drives_ = std::make_unique<DriveCache>();
  const Log log_;
  const std::string device_name_;
};

}  // namespace leanstream::runtime
