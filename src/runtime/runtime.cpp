#include "runtime/runtime.h"

#include "base/units.h"
#include "runtime/machine.h"

namespace leanstream::runtime {
namespace {

Result<const kernels::Kernels*> choose_kernels(const std::optional<std::string>& simd) {
  if (const kernels::Kernels* chosen = kernels::select_kernels(simd ? simd->c_str() : nullptr)) return chosen;
  std::string known;
  for (const kernels::Kernels* each : kernels::all_kernels())
    known += (known.empty() ? "" : ", ") + std::string(each->name);
  return unsupported("cannot use SIMD target '" + simd.value_or("") + "': this CPU runs " + known);
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeParams& params) {
  if (params.threads > kMaxThreads)
    return invalid_argument("cannot use " + std::to_string(params.threads) + " threads: the most is " +
                            std::to_string(kMaxThreads));
  const Result<const kernels::Kernels*> kernels = choose_kernels(params.simd);
  if (!kernels.ok()) return kernels.status();

  const uint32_t threads = params.threads != 0 ? params.threads : usable_cpu_count();
  Result<std::unique_ptr<engine::WorkerTeam>> team = engine::WorkerTeam::create(threads);
  if (!team.ok()) return team.status();

  const bool chosen_by_caller = params.memory_budget_bytes != 0;
  Result<std::unique_ptr<MemoryBudget>> memory = MemoryBudget::create(
      chosen_by_caller ? params.memory_budget_bytes : default_budget_bytes(), measure_fixed_bytes(threads));
  if (!memory.ok()) return memory.status();

  std::unique_ptr<Runtime> runtime(
      new Runtime(**kernels, std::move(*team), std::move(*memory), params.storage, params.log));
  runtime->log().info("cpu: " + runtime->device_name() + ", " + runtime->kernels().name + ", " +
                      std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
  runtime->log().info("memory budget: " + format_bytes(runtime->memory().budget_bytes()) +
                      (chosen_by_caller ? " (as asked), " : " (90 % of what MemAvailable and the cgroup allow), ") +
                      format_bytes(runtime->memory().fixed_bytes()) + " of it for the process itself");
  return runtime;
}

Runtime::Runtime(const kernels::Kernels& kernels, std::unique_ptr<engine::WorkerTeam> team,
                 std::unique_ptr<MemoryBudget> memory, StorageSettings storage, Log log)
    : kernels_(kernels),
      team_(std::move(team)),
      memory_(std::move(memory)),
      storage_(std::move(storage)),
      log_(log),
      device_name_(machine_name()) {}

}  // namespace leanstream::runtime
