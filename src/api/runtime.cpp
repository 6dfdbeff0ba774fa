// Version, status names and leanstream_runtime.

#include "api/boundary.h"
#include "api/handles.h"

namespace leanstream::api {
namespace {

void forward_log(runtime::LogLevel level, std::string_view line, void* user) {
  const auto* handle = static_cast<const leanstream_runtime*>(user);
  handle->log(static_cast<leanstream_log_level>(level), line.data(), line.size(), handle->log_user);
}

Result<runtime::StorageSettings> storage_settings(const leanstream_runtime_params& params) {
  runtime::StorageSettings settings;
  if (params.state_dir != nullptr) settings.state_folder = params.state_dir;
  if (params.emulate_storage != nullptr) {
    Result<io::StorageModel> model = io::StorageModel::parse(params.emulate_storage);
    if (!model.ok()) return model.status();
    settings.model = *std::move(model);
  }
  using Kind = io::PoolParams::Kind;
  const std::string_view wanted = params.io == nullptr ? "auto" : params.io;
  for (const auto& [name, kind] :
       {std::pair("auto", Kind::kAuto), {"io_uring", Kind::kRing}, {"pread", Kind::kThreads}})
    if (wanted == name) {
      settings.kind = kind;
      return settings;
    }
  return invalid_argument("leanstream_runtime_params: io is '" + std::string(wanted) +
                          "', it can be auto, io_uring or pread");
}

Status create(const leanstream_runtime_params* params, leanstream_runtime** out) {
  if (Status status = require({{out, "out"}}); !status.ok()) return status;
  leanstream_runtime_params defaults;
  leanstream_runtime_params_init(&defaults);
  if (params == nullptr) params = &defaults;
  if (Status status = check_struct(*params, "leanstream_runtime_params"); !status.ok()) return status;

  auto handle = std::make_unique<leanstream_runtime>();
  handle->log = params->log;
  handle->log_user = params->log_user;
  runtime::RuntimeParams wanted;
  wanted.memory_budget_bytes = params->memory_budget_bytes;
  wanted.threads = params->threads;
  if (params->simd != nullptr) wanted.simd = params->simd;
  Result<runtime::StorageSettings> storage = storage_settings(*params);
  if (!storage.ok()) return storage.status();
  wanted.storage = *std::move(storage);
  if (params->log != nullptr) wanted.log = runtime::Log(forward_log, handle.get());
  Result<std::unique_ptr<runtime::Runtime>> created = runtime::Runtime::create(wanted);
  if (!created.ok()) return created.status();
  handle->runtime = *std::move(created);
  *out = handle.release();
  return {};
}

Status get_info(const leanstream_runtime* handle, leanstream_runtime_info* info) {
  if (Status status = require({{handle, "runtime"}, {info, "info"}}); !status.ok()) return status;
  if (Status status = check_struct(*info, "leanstream_runtime_info"); !status.ok()) return status;
  const runtime::Runtime& runtime = *handle->runtime;
  info->memory_budget_bytes = runtime.memory().budget_bytes();
  info->memory_held_bytes = runtime.memory().held_bytes();
  info->threads = runtime.team().size();
  info->simd = runtime.kernels().name;
  info->backend = "cpu";
  copy_text(runtime.device_name(), info->device_name, sizeof info->device_name);
  return {};
}

}  // namespace
}  // namespace leanstream::api

using namespace leanstream;

const char* leanstream_version(void) {
  return "0.1.0";
}

const char* leanstream_status_name(leanstream_status status) {
  switch (api::raw(status)) {
    case LEANSTREAM_OK:
      return "ok";
    case LEANSTREAM_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case LEANSTREAM_ERROR_NOT_FOUND:
      return "not found";
    case LEANSTREAM_ERROR_IO:
      return "input or output failed";
    case LEANSTREAM_ERROR_MALFORMED:
      return "malformed";
    case LEANSTREAM_ERROR_UNSUPPORTED:
      return "unsupported";
    case LEANSTREAM_ERROR_OUT_OF_BUDGET:
      return "out of budget";
    case LEANSTREAM_ERROR_CONTEXT_FULL:
      return "context full";
    case LEANSTREAM_ERROR_CANCELLED:
      return "cancelled";
    case LEANSTREAM_ERROR_NUMERIC:
      return "not a number";
    case LEANSTREAM_ERROR_BUFFER_TOO_SMALL:
      return "buffer too small";
    case LEANSTREAM_ERROR_DEADLINE:
      return "deadline passed";
    case LEANSTREAM_ERROR_INTERNAL:
      return "internal error";
    default:
      return "unknown status";
  }
}

void leanstream_runtime_params_init(leanstream_runtime_params* params) {
  if (params == nullptr) return;
  *params = {};
  params->struct_size = sizeof *params;
}

leanstream_status leanstream_runtime_create(const leanstream_runtime_params* params, leanstream_runtime** out,
                                            leanstream_error* error) {
  return api::guarded(error, [&] { return api::create(params, out); });
}

void leanstream_runtime_destroy(leanstream_runtime* runtime) {
  delete runtime;
}

leanstream_status leanstream_runtime_get_info(const leanstream_runtime* runtime, leanstream_runtime_info* info,
                                              leanstream_error* error) {
  return api::guarded(error, [&] { return api::get_info(runtime, info); });
}
