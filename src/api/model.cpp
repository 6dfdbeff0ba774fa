// leanstream_model: opening, what is in a file, and the memory plan.

#include "api/boundary.h"
#include "api/handles.h"
#include "runtime/describe.h"

namespace leanstream::api {
namespace {

using runtime::OpenModel;

Status open(leanstream_runtime* runtime, const char* path, const leanstream_model_params* params,
            leanstream_model** out) {
  if (Status status = require({{runtime, "runtime"}, {path, "path"}, {out, "out"}}); !status.ok()) return status;
  leanstream_model_params defaults;
  leanstream_model_params_init(&defaults);
  if (params == nullptr) params = &defaults;
  if (Status status = check_struct(*params, "leanstream_model_params"); !status.ok()) return status;
  const int mode = raw(params->mode);
  if (mode < LEANSTREAM_LOAD_METADATA || mode > LEANSTREAM_LOAD_FULL)
    return invalid_argument("leanstream_model_params: mode is " + std::to_string(mode) + ", the modes are 0 to 2");

  const auto forward_progress = [](float fraction, void* user) {
    const auto* callbacks = static_cast<const leanstream_model_params*>(user);
    return callbacks->progress(fraction, callbacks->progress_user) != 0;
  };
  runtime::Progress progress;
  if (params->progress != nullptr) progress = {forward_progress, const_cast<leanstream_model_params*>(params)};

  const Result<runtime::SessionShape> session = session_shape(params->session);
  if (!session.ok()) return session.status();
  Result<std::unique_ptr<OpenModel>> model =
      OpenModel::open(*runtime->runtime, path, static_cast<runtime::LoadMode>(mode), *session, progress,
                      params->chat_template == nullptr ? "" : params->chat_template);
  if (!model.ok()) return model.status();
  *out = new leanstream_model{*std::move(model)};
  return {};
}

void fill_shape(const model::Config& config, leanstream_model_info& info) {
  info.n_layers = config.n_layers;
  info.d_model = config.d_model;
  info.d_ff = config.d_ff;
  info.n_heads = config.n_heads;
  info.n_kv_heads = config.n_kv_heads;
  info.head_dim = config.head_dim;
  info.n_vocab = config.n_vocab;
  info.context_length = config.context_length;
}

// A text of the metadata, or "" where there is none.
std::string metadata_text(const gguf::Model& file, const char* key) {
  const Result<std::optional<std::string>> text = file.find_string(key);
  return text.ok() ? text->value_or("") : "";
}

Status get_info(const leanstream_model* handle, leanstream_model_info* out) {
  if (Status status = require({{handle, "model"}, {out, "info"}}); !status.ok()) return status;
  if (Status status = check_struct(*out, "leanstream_model_info"); !status.ok()) return status;
  const OpenModel& model = *handle->model;
  const gguf::Model& file = model.file();
  const runtime::TensorSummary tensors = runtime::summarise_tensors(file);

  leanstream_model_info info{};
  info.struct_size = sizeof info;
  copy_text(metadata_text(file, "general.architecture"), info.architecture, sizeof info.architecture);
  copy_text(metadata_text(file, "general.name"), info.name, sizeof info.name);
  copy_text(tensors.weight_type, info.weight_type, sizeof info.weight_type);
  info.file_bytes = file.total_file_bytes();
  info.parameters = tensors.parameters;
  info.weight_bytes = tensors.weight_bytes;
  if (model.config().ok()) fill_shape(*model.config(), info);
  info.bos = info.eos = -1;
  if (const model::Tokenizer* tokenizer = model.tokenizer()) {
    if (info.n_vocab == 0) info.n_vocab = tokenizer->size();
    info.bos = tokenizer->bos();
    info.eos = tokenizer->eos();
    info.adds_bos = tokenizer->adds_bos() ? 1 : 0;
  }
  if (model.chat_template()) {
    info.has_chat_template = 1;
    copy_text(model.chat_template()->family(), info.chat_family, sizeof info.chat_family);
  }
  *out = info;
  return {};
}

Status describe(const leanstream_model* handle, size_t max_array, char* buffer, size_t capacity, size_t* needed) {
  if (Status status = require({{handle, "model"}, {needed, "needed"}}); !status.ok()) return status;
  const std::string json = runtime::describe_json(handle->model->file(), max_array);
  return fill_buffer(std::span<const char>(json), buffer, capacity, needed, "bytes");
}

Status plan(const leanstream_model* handle, const leanstream_session_params* params, leanstream_plan* out) {
  if (Status status = require({{handle, "model"}, {out, "plan"}}); !status.ok()) return status;
  if (Status status = check_struct(*out, "leanstream_plan"); !status.ok()) return status;
  const Result<runtime::SessionShape> shape = session_shape(params);
  if (!shape.ok()) return shape.status();
  const Result<runtime::MemoryPlan> plan = handle->model->plan(*shape, abort_hook(params));
  if (!plan.ok()) return plan.status();
  out->weights_bytes = plan->weights_bytes;
  out->kv_bytes = plan->kv_bytes;
  out->buffers_bytes = plan->buffers_bytes;
  out->fixed_bytes = plan->fixed_bytes;
  out->total_bytes = plan->total_bytes();
  out->budget_bytes = plan->budget_bytes;
  out->context = plan->context;
  out->fits = plan->fits() ? 1 : 0;
  out->least_budget_bytes = plan->least_budget_bytes();
  out->bytes_per_token = plan->bytes_per_token;
  out->ring_bytes = plan->ring_bytes;
  out->streamed_bytes = plan->stream.streamed_bytes;
  out->request_bytes = 0;
  out->storage_bytes_per_s = 0;
  if (plan->stream.streams()) {
    const Result<runtime::RequestShape> drive = handle->model->drive();  // known since the plan
    if (!drive.ok()) return drive.status();
    out->request_bytes = drive->size_bytes;
    out->storage_bytes_per_s = drive->bytes_per_s;
  }
  const auto part = [](const scheduler::Part& p) { return leanstream_plan_part{p.bytes, p.resident_bytes}; };
  out->embedding = part(plan->stream.embedding);
  out->attention = part(plan->stream.attention);
  out->mlp = part(plan->stream.mlp);
  out->output = part(plan->stream.output);
  out->norms = part(plan->stream.norms);
  return {};
}

}  // namespace
}  // namespace leanstream::api

using namespace leanstream;

void leanstream_model_params_init(leanstream_model_params* params) {
  if (params == nullptr) return;
  *params = {};
  params->struct_size = sizeof *params;
  params->mode = LEANSTREAM_LOAD_FULL;
}

leanstream_status leanstream_model_open(leanstream_runtime* runtime, const char* path,
                                        const leanstream_model_params* params, leanstream_model** out,
                                        leanstream_error* error) {
  return api::guarded(error, [&] { return api::open(runtime, path, params, out); });
}

void leanstream_model_destroy(leanstream_model* model) {
  delete model;
}

leanstream_status leanstream_model_get_info(const leanstream_model* model, leanstream_model_info* info,
                                            leanstream_error* error) {
  return api::guarded(error, [&] { return api::get_info(model, info); });
}

leanstream_status leanstream_model_describe(const leanstream_model* model, size_t max_array, char* buffer,
                                            size_t capacity, size_t* needed, leanstream_error* error) {
  return api::guarded(error, [&] { return api::describe(model, max_array, buffer, capacity, needed); });
}

leanstream_status leanstream_model_plan(const leanstream_model* model, const leanstream_session_params* params,
                                        leanstream_plan* plan, leanstream_error* error) {
  return api::guarded(error, [&] { return api::plan(model, params, plan); });
}
