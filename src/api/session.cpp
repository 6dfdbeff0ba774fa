// leanstream_session: its tokens, sampling, generation and statistics.

#include "api/boundary.h"
#include "api/handles.h"
#include "base/memory.h"

namespace leanstream::api {

Result<runtime::SessionShape> session_shape(const leanstream_session_params* params) {
  if (params == nullptr) return runtime::SessionShape{};
  if (Status status = check_struct(*params, "leanstream_session_params"); !status.ok()) return status;
  const int kv_type = raw(params->kv_type);
  if (kv_type != LEANSTREAM_KV_F16 && kv_type != LEANSTREAM_KV_Q8_0)
    return invalid_argument("leanstream_session_params: kv_type is " + std::to_string(kv_type) +
                            ", the types are 0 (F16) and 1 (Q8_0)");
  runtime::SessionShape shape;
  shape.context = params->context;
  shape.kv_type = kv_type == LEANSTREAM_KV_F16 ? kernels::KvType::kF16 : kernels::KvType::kQ8_0;
  shape.max_logits = params->max_logits;
  return shape;
}

namespace {

using Tokens = std::span<const model::Token>;

Status create(leanstream_model* model, const leanstream_session_params* params, leanstream_session** out) {
  if (Status status = require({{model, "model"}, {out, "out"}}); !status.ok()) return status;
  const Result<runtime::SessionShape> shape = session_shape(params);
  if (!shape.ok()) return shape.status();
  Result<std::unique_ptr<runtime::Session>> session =
      runtime::Session::create(*model->model, *shape, abort_hook(params));
  if (!session.ok()) return session.status();
  *out = new leanstream_session{*std::move(session)};
  return {};
}

Status score(leanstream_session* session, const leanstream_token* tokens, size_t count, double* nll) {
  if (Status status = require({{session, "session"}, {tokens, "tokens"}}); !status.ok()) return status;
  if (nll == nullptr && count > 1) return invalid_argument("argument 'nll' is NULL");
  return session->session->score(Tokens(tokens, count), nll);
}

Status set_sampling(leanstream_session* session, const leanstream_sampling_params* params) {
  if (Status status = require({{session, "session"}, {params, "params"}}); !status.ok()) return status;
  if (Status status = check_struct(*params, "leanstream_sampling_params"); !status.ok()) return status;
  model::SamplingParams wanted;
  wanted.temperature = params->temperature;
  wanted.top_k = params->top_k;
  wanted.top_p = params->top_p;
  wanted.min_p = params->min_p;
  wanted.repeat_penalty = params->repeat_penalty;
  wanted.repeat_last_n = params->repeat_last_n;
  wanted.seed = params->seed;
  return session->session->set_sampling(wanted);
}

Status sample(leanstream_session* session, uint32_t index, leanstream_token* token) {
  if (Status status = require({{session, "session"}, {token, "token"}}); !status.ok()) return status;
  const Result<model::Token> sampled = session->session->sample(index);
  if (sampled.ok()) *token = *sampled;
  return sampled.status();
}

Result<runtime::GenerateParams> generate_params(const leanstream_generate_params* params) {
  runtime::GenerateParams wanted;
  if (params == nullptr) return wanted;
  if (Status status = check_struct(*params, "leanstream_generate_params"); !status.ok()) return status;
  if (params->max_tokens < -1)
    return invalid_argument("leanstream_generate_params: max_tokens is " + std::to_string(params->max_tokens) +
                            ", it goes from -1 (no limit)");
  if (params->stop == nullptr && params->n_stop != 0)
    return invalid_argument("leanstream_generate_params: stop is NULL and n_stop is not 0");
  for (size_t i = 0; i < params->n_stop; ++i) {
    if (params->stop[i] == nullptr || params->stop[i][0] == '\0')
      return invalid_argument("leanstream_generate_params: stop string " + std::to_string(i) + " is NULL or empty");
    wanted.stop_strings.emplace_back(params->stop[i]);
  }
  wanted.max_tokens = params->max_tokens;
  wanted.ignore_eos = params->ignore_eos != 0;
  wanted.text = params->text;
  wanted.text_user = params->text_user;
  return wanted;
}

Status generate(leanstream_session* session, const leanstream_generate_params* params,
                leanstream_generate_result* out) {
  if (Status status = require({{session, "session"}, {out, "result"}}); !status.ok()) return status;
  if (Status status = check_struct(*out, "leanstream_generate_result"); !status.ok()) return status;
  const Result<runtime::GenerateParams> wanted = generate_params(params);
  if (!wanted.ok()) return wanted.status();
  const Result<runtime::GenerateResult> result = session->session->generate(*wanted);
  if (!result.ok()) return result.status();
  out->reason = static_cast<leanstream_stop_reason>(result->reason);
  out->tokens = result->tokens;
  out->waiting_token = result->waiting_token;
  return {};
}

// nullptr: all weights are resident, nothing is read and nothing waited for.
void fill_stream(const scheduler::Streamer* stream, leanstream_stats& out) {
  out.io_wait_ms = 0;
  out.cache_hit_ratio = 1;
  out.io_direct = out.io_registered_buffers = out.io_registered_files = out.io_huge_pages = 0;
  copy_text("", out.io_engine, sizeof out.io_engine);
  if (stream == nullptr) return;
  out.io_wait_ms = static_cast<double>(stream->counters().wait_us) / 1000;
  out.cache_hit_ratio -= static_cast<double>(stream->plan().streamed_bytes) / static_cast<double>(out.bytes_per_token);
  const io::PoolFacts facts = stream->facts();
  copy_text(facts.engine, out.io_engine, sizeof out.io_engine);
  out.io_direct = facts.direct ? 1 : 0;
  out.io_registered_buffers = facts.registered_buffers ? 1 : 0;
  out.io_registered_files = facts.registered_files ? 1 : 0;
  out.io_huge_pages = facts.huge_pages ? 1 : 0;
}

Status get_stats(const leanstream_session* handle, leanstream_stats* out) {
  if (Status status = require({{handle, "session"}, {out, "stats"}}); !status.ok()) return status;
  if (Status status = check_struct(*out, "leanstream_stats"); !status.ok()) return status;
  const runtime::Session& session = *handle->session;
  const runtime::OpenModel& model = session.model();
  const runtime::Statistics& statistics = session.statistics();
  out->prompt_tokens = statistics.prompt_tokens;
  out->generated_tokens = statistics.generated_tokens;
  out->decoded_tokens = statistics.decoded_tokens;
  out->load_ms = model.load_ms();
  out->ttft_ms = statistics.ttft_ms;
  out->prefill_ms = statistics.prefill_ms;
  out->decode_ms = statistics.decode_ms;
  out->peak_rss_bytes = process_peak_rss_bytes();
  out->device_bytes = 0;
  out->memory_budget_bytes = model.runtime().memory().budget_bytes();
  out->bytes_read = model.bytes_read();
  out->bytes_read_decode = statistics.decode_bytes_read;
  out->bytes_per_token = model.weights()->bytes_per_token;
  const bool waits = statistics.decode_wait_ms > statistics.decode_ms / 10;
  out->bound_by = waits ? LEANSTREAM_BOUND_STORAGE : LEANSTREAM_BOUND_MEMORY;
  fill_stream(model.stream(), *out);
  return {};
}

}  // namespace
}  // namespace leanstream::api

using namespace leanstream;

void leanstream_session_params_init(leanstream_session_params* params) {
  if (params == nullptr) return;
  *params = {};
  params->struct_size = sizeof *params;
  params->kv_type = LEANSTREAM_KV_F16;
  params->max_logits = 1;
}

leanstream_status leanstream_session_create(leanstream_model* model, const leanstream_session_params* params,
                                            leanstream_session** out, leanstream_error* error) {
  return api::guarded(error, [&] { return api::create(model, params, out); });
}

void leanstream_session_destroy(leanstream_session* session) {
  delete session;
}

uint32_t leanstream_session_position(const leanstream_session* session) {
  return session == nullptr ? 0 : session->session->position();
}

uint32_t leanstream_session_context(const leanstream_session* session) {
  return session == nullptr ? 0 : session->session->context();
}

const leanstream_token* leanstream_session_tokens(const leanstream_session* session) {
  return session == nullptr ? nullptr : session->session->tokens();
}

leanstream_status leanstream_session_prefill(leanstream_session* session, const leanstream_token* tokens, size_t count,
                                             leanstream_error* error) {
  return api::guarded(error, [&] {
    Status status = api::require({{session, "session"}, {tokens, "tokens"}});
    return status.ok() ? session->session->prefill({tokens, count}) : status;
  });
}

leanstream_status leanstream_session_decode(leanstream_session* session, const leanstream_token* tokens, size_t count,
                                            leanstream_error* error) {
  return api::guarded(error, [&] {
    Status status = api::require({{session, "session"}, {tokens, "tokens"}});
    return status.ok() ? session->session->decode({tokens, count}) : status;
  });
}

leanstream_status leanstream_session_score(leanstream_session* session, const leanstream_token* tokens, size_t count,
                                           double* nll, leanstream_error* error) {
  return api::guarded(error, [&] { return api::score(session, tokens, count, nll); });
}

const float* leanstream_session_logits(const leanstream_session* session, uint32_t index) {
  return session == nullptr ? nullptr : session->session->logits(index);
}

leanstream_status leanstream_session_truncate(leanstream_session* session, uint32_t position, leanstream_error* error) {
  return api::guarded(error, [&] {
    Status status = api::require({{session, "session"}});
    return status.ok() ? session->session->truncate(position) : status;
  });
}

void leanstream_session_cancel(leanstream_session* session) {
  if (session != nullptr) session->session->cancel();
}

leanstream_status leanstream_session_start_trace(leanstream_session* session, const char* path, double top,
                                                 leanstream_error* error) {
  return api::guarded(error, [&] {
    Status status = api::require({{session, "session"}, {path, "path"}});
    return status.ok() ? session->session->start_trace(path, top) : status;
  });
}

leanstream_status leanstream_session_finish_trace(leanstream_session* session, leanstream_error* error) {
  return api::guarded(error, [&] {
    Status status = api::require({{session, "session"}});
    return status.ok() ? session->session->finish_trace() : status;
  });
}

void leanstream_sampling_params_init(leanstream_sampling_params* params) {
  if (params == nullptr) return;
  const model::SamplingParams defaults;
  *params = {};
  params->struct_size = sizeof *params;
  params->temperature = defaults.temperature;
  params->top_k = defaults.top_k;
  params->top_p = defaults.top_p;
  params->min_p = defaults.min_p;
  params->repeat_penalty = defaults.repeat_penalty;
  params->repeat_last_n = defaults.repeat_last_n;
  params->seed = defaults.seed;
}

leanstream_status leanstream_session_set_sampling(leanstream_session* session, const leanstream_sampling_params* params,
                                                  leanstream_error* error) {
  return api::guarded(error, [&] { return api::set_sampling(session, params); });
}

leanstream_status leanstream_session_sample(leanstream_session* session, uint32_t index, leanstream_token* token,
                                            leanstream_error* error) {
  return api::guarded(error, [&] { return api::sample(session, index, token); });
}

void leanstream_generate_params_init(leanstream_generate_params* params) {
  if (params == nullptr) return;
  *params = {};
  params->struct_size = sizeof *params;
  params->max_tokens = -1;
}

leanstream_status leanstream_session_generate(leanstream_session* session, const leanstream_generate_params* params,
                                              leanstream_generate_result* result, leanstream_error* error) {
  return api::guarded(error, [&] { return api::generate(session, params, result); });
}

leanstream_status leanstream_session_get_stats(const leanstream_session* session, leanstream_stats* stats,
                                               leanstream_error* error) {
  return api::guarded(error, [&] { return api::get_stats(session, stats); });
}
