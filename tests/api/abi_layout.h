/* The binary interface of version 0.1 on 64-bit machines: sizes, offsets and numbers that programs compiled earlier
 * rely on. Included by a C file and a C++ file; both must see the same. A change here is a change of the SONAME. */
#include <assert.h>
#include <leanstream/leanstream.h>
#include <stddef.h>

static_assert(sizeof(leanstream_error) == 1024, "leanstream_error");
static_assert(offsetof(leanstream_error, status) == 0, "status");
static_assert(offsetof(leanstream_error, message) == 4, "message");

static_assert(sizeof(leanstream_runtime_params) == 72, "leanstream_runtime_params");
static_assert(offsetof(leanstream_runtime_params, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_runtime_params, memory_budget_bytes) == 8, "memory_budget_bytes");
static_assert(offsetof(leanstream_runtime_params, threads) == 16, "threads");
static_assert(offsetof(leanstream_runtime_params, simd) == 24, "simd");
static_assert(offsetof(leanstream_runtime_params, log) == 32, "log");
static_assert(offsetof(leanstream_runtime_params, log_user) == 40, "log_user");
static_assert(offsetof(leanstream_runtime_params, state_dir) == 48, "state_dir");
static_assert(offsetof(leanstream_runtime_params, emulate_storage) == 56, "emulate_storage");
static_assert(offsetof(leanstream_runtime_params, io) == 64, "io");

static_assert(sizeof(leanstream_runtime_info) == 176, "leanstream_runtime_info");
static_assert(offsetof(leanstream_runtime_info, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_runtime_info, memory_budget_bytes) == 8, "memory_budget_bytes");
static_assert(offsetof(leanstream_runtime_info, memory_held_bytes) == 16, "memory_held_bytes");
static_assert(offsetof(leanstream_runtime_info, threads) == 24, "threads");
static_assert(offsetof(leanstream_runtime_info, simd) == 32, "simd");
static_assert(offsetof(leanstream_runtime_info, backend) == 40, "backend");
static_assert(offsetof(leanstream_runtime_info, device_name) == 48, "device_name");

static_assert(sizeof(leanstream_model_params) == 48, "leanstream_model_params");
static_assert(offsetof(leanstream_model_params, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_model_params, mode) == 8, "mode");
static_assert(offsetof(leanstream_model_params, progress) == 16, "progress");
static_assert(offsetof(leanstream_model_params, progress_user) == 24, "progress_user");
static_assert(offsetof(leanstream_model_params, session) == 32, "session");
static_assert(offsetof(leanstream_model_params, chat_template) == 40, "chat_template");

static_assert(sizeof(leanstream_model_info) == 464, "leanstream_model_info");
static_assert(offsetof(leanstream_model_info, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_model_info, architecture) == 8, "architecture");
static_assert(offsetof(leanstream_model_info, name) == 72, "name");
static_assert(offsetof(leanstream_model_info, weight_type) == 328, "weight_type");
static_assert(offsetof(leanstream_model_info, file_bytes) == 360, "file_bytes");
static_assert(offsetof(leanstream_model_info, parameters) == 368, "parameters");
static_assert(offsetof(leanstream_model_info, weight_bytes) == 376, "weight_bytes");
static_assert(offsetof(leanstream_model_info, n_layers) == 384, "n_layers");
static_assert(offsetof(leanstream_model_info, d_model) == 388, "d_model");
static_assert(offsetof(leanstream_model_info, d_ff) == 392, "d_ff");
static_assert(offsetof(leanstream_model_info, n_heads) == 396, "n_heads");
static_assert(offsetof(leanstream_model_info, n_kv_heads) == 400, "n_kv_heads");
static_assert(offsetof(leanstream_model_info, head_dim) == 404, "head_dim");
static_assert(offsetof(leanstream_model_info, n_vocab) == 408, "n_vocab");
static_assert(offsetof(leanstream_model_info, context_length) == 412, "context_length");
static_assert(offsetof(leanstream_model_info, bos) == 416, "bos");
static_assert(offsetof(leanstream_model_info, eos) == 420, "eos");
static_assert(offsetof(leanstream_model_info, adds_bos) == 424, "adds_bos");
static_assert(offsetof(leanstream_model_info, has_chat_template) == 428, "has_chat_template");
static_assert(offsetof(leanstream_model_info, chat_family) == 432, "chat_family");

static_assert(sizeof(leanstream_session_params) == 40, "leanstream_session_params");
static_assert(offsetof(leanstream_session_params, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_session_params, context) == 8, "context");
static_assert(offsetof(leanstream_session_params, kv_type) == 12, "kv_type");
static_assert(offsetof(leanstream_session_params, max_logits) == 16, "max_logits");
static_assert(offsetof(leanstream_session_params, abort) == 24, "abort");
static_assert(offsetof(leanstream_session_params, abort_user) == 32, "abort_user");

static_assert(sizeof(leanstream_plan_part) == 16, "leanstream_plan_part");

static_assert(sizeof(leanstream_plan) == 192, "leanstream_plan");
static_assert(offsetof(leanstream_plan, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_plan, weights_bytes) == 8, "weights_bytes");
static_assert(offsetof(leanstream_plan, kv_bytes) == 16, "kv_bytes");
static_assert(offsetof(leanstream_plan, buffers_bytes) == 24, "buffers_bytes");
static_assert(offsetof(leanstream_plan, fixed_bytes) == 32, "fixed_bytes");
static_assert(offsetof(leanstream_plan, total_bytes) == 40, "total_bytes");
static_assert(offsetof(leanstream_plan, budget_bytes) == 48, "budget_bytes");
static_assert(offsetof(leanstream_plan, context) == 56, "context");
static_assert(offsetof(leanstream_plan, fits) == 60, "fits");
static_assert(offsetof(leanstream_plan, least_budget_bytes) == 64, "least_budget_bytes");
static_assert(offsetof(leanstream_plan, bytes_per_token) == 72, "bytes_per_token");
static_assert(offsetof(leanstream_plan, ring_bytes) == 80, "ring_bytes");
static_assert(offsetof(leanstream_plan, streamed_bytes) == 88, "streamed_bytes");
static_assert(offsetof(leanstream_plan, request_bytes) == 96, "request_bytes");
static_assert(offsetof(leanstream_plan, storage_bytes_per_s) == 104, "storage_bytes_per_s");
static_assert(offsetof(leanstream_plan, embedding) == 112, "embedding");
static_assert(offsetof(leanstream_plan, attention) == 128, "attention");
static_assert(offsetof(leanstream_plan, mlp) == 144, "mlp");
static_assert(offsetof(leanstream_plan, output) == 160, "output");
static_assert(offsetof(leanstream_plan, norms) == 176, "norms");

static_assert(sizeof(leanstream_chat_message) == 24, "leanstream_chat_message");
static_assert(offsetof(leanstream_chat_message, role) == 0, "role");
static_assert(offsetof(leanstream_chat_message, content) == 8, "content");
static_assert(offsetof(leanstream_chat_message, content_length) == 16, "content_length");

static_assert(sizeof(leanstream_sampling_params) == 40, "leanstream_sampling_params");
static_assert(offsetof(leanstream_sampling_params, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_sampling_params, temperature) == 8, "temperature");
static_assert(offsetof(leanstream_sampling_params, top_k) == 12, "top_k");
static_assert(offsetof(leanstream_sampling_params, top_p) == 16, "top_p");
static_assert(offsetof(leanstream_sampling_params, min_p) == 20, "min_p");
static_assert(offsetof(leanstream_sampling_params, repeat_penalty) == 24, "repeat_penalty");
static_assert(offsetof(leanstream_sampling_params, repeat_last_n) == 28, "repeat_last_n");
static_assert(offsetof(leanstream_sampling_params, seed) == 32, "seed");

static_assert(sizeof(leanstream_generate_params) == 56, "leanstream_generate_params");
static_assert(offsetof(leanstream_generate_params, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_generate_params, max_tokens) == 8, "max_tokens");
static_assert(offsetof(leanstream_generate_params, ignore_eos) == 16, "ignore_eos");
static_assert(offsetof(leanstream_generate_params, stop) == 24, "stop");
static_assert(offsetof(leanstream_generate_params, n_stop) == 32, "n_stop");
static_assert(offsetof(leanstream_generate_params, text) == 40, "text");
static_assert(offsetof(leanstream_generate_params, text_user) == 48, "text_user");

static_assert(sizeof(leanstream_generate_result) == 32, "leanstream_generate_result");
static_assert(offsetof(leanstream_generate_result, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_generate_result, reason) == 8, "reason");
static_assert(offsetof(leanstream_generate_result, tokens) == 16, "tokens");
static_assert(offsetof(leanstream_generate_result, waiting_token) == 24, "waiting_token");

static_assert(sizeof(leanstream_stats) == 168, "leanstream_stats");
static_assert(offsetof(leanstream_stats, struct_size) == 0, "struct_size");
static_assert(offsetof(leanstream_stats, prompt_tokens) == 8, "prompt_tokens");
static_assert(offsetof(leanstream_stats, generated_tokens) == 16, "generated_tokens");
static_assert(offsetof(leanstream_stats, decoded_tokens) == 24, "decoded_tokens");
static_assert(offsetof(leanstream_stats, load_ms) == 32, "load_ms");
static_assert(offsetof(leanstream_stats, ttft_ms) == 40, "ttft_ms");
static_assert(offsetof(leanstream_stats, prefill_ms) == 48, "prefill_ms");
static_assert(offsetof(leanstream_stats, decode_ms) == 56, "decode_ms");
static_assert(offsetof(leanstream_stats, peak_rss_bytes) == 64, "peak_rss_bytes");
static_assert(offsetof(leanstream_stats, device_bytes) == 72, "device_bytes");
static_assert(offsetof(leanstream_stats, memory_budget_bytes) == 80, "memory_budget_bytes");
static_assert(offsetof(leanstream_stats, bytes_read) == 88, "bytes_read");
static_assert(offsetof(leanstream_stats, bytes_read_decode) == 96, "bytes_read_decode");
static_assert(offsetof(leanstream_stats, io_wait_ms) == 104, "io_wait_ms");
static_assert(offsetof(leanstream_stats, cache_hit_ratio) == 112, "cache_hit_ratio");
static_assert(offsetof(leanstream_stats, bytes_per_token) == 120, "bytes_per_token");
static_assert(offsetof(leanstream_stats, bound_by) == 128, "bound_by");
static_assert(offsetof(leanstream_stats, io_engine) == 132, "io_engine");
static_assert(offsetof(leanstream_stats, io_direct) == 148, "io_direct");
static_assert(offsetof(leanstream_stats, io_registered_buffers) == 152, "io_registered_buffers");
static_assert(offsetof(leanstream_stats, io_registered_files) == 156, "io_registered_files");
static_assert(offsetof(leanstream_stats, io_huge_pages) == 160, "io_huge_pages");

static_assert((int)LEANSTREAM_OK == 0, "LEANSTREAM_OK");
static_assert((int)LEANSTREAM_ERROR_INVALID_ARGUMENT == 1, "LEANSTREAM_ERROR_INVALID_ARGUMENT");
static_assert((int)LEANSTREAM_ERROR_NOT_FOUND == 2, "LEANSTREAM_ERROR_NOT_FOUND");
static_assert((int)LEANSTREAM_ERROR_IO == 3, "LEANSTREAM_ERROR_IO");
static_assert((int)LEANSTREAM_ERROR_MALFORMED == 4, "LEANSTREAM_ERROR_MALFORMED");
static_assert((int)LEANSTREAM_ERROR_UNSUPPORTED == 5, "LEANSTREAM_ERROR_UNSUPPORTED");
static_assert((int)LEANSTREAM_ERROR_OUT_OF_BUDGET == 6, "LEANSTREAM_ERROR_OUT_OF_BUDGET");
static_assert((int)LEANSTREAM_ERROR_CONTEXT_FULL == 7, "LEANSTREAM_ERROR_CONTEXT_FULL");
static_assert((int)LEANSTREAM_ERROR_CANCELLED == 8, "LEANSTREAM_ERROR_CANCELLED");
static_assert((int)LEANSTREAM_ERROR_NUMERIC == 9, "LEANSTREAM_ERROR_NUMERIC");
static_assert((int)LEANSTREAM_ERROR_BUFFER_TOO_SMALL == 10, "LEANSTREAM_ERROR_BUFFER_TOO_SMALL");
static_assert((int)LEANSTREAM_ERROR_DEADLINE == 11, "LEANSTREAM_ERROR_DEADLINE");
static_assert((int)LEANSTREAM_ERROR_INTERNAL == 12, "LEANSTREAM_ERROR_INTERNAL");
static_assert((int)LEANSTREAM_LOG_DEBUG == 0, "LEANSTREAM_LOG_DEBUG");
static_assert((int)LEANSTREAM_LOG_INFO == 1, "LEANSTREAM_LOG_INFO");
static_assert((int)LEANSTREAM_LOG_WARN == 2, "LEANSTREAM_LOG_WARN");
static_assert((int)LEANSTREAM_LOG_ERROR == 3, "LEANSTREAM_LOG_ERROR");
static_assert((int)LEANSTREAM_LOAD_METADATA == 0, "LEANSTREAM_LOAD_METADATA");
static_assert((int)LEANSTREAM_LOAD_VOCABULARY == 1, "LEANSTREAM_LOAD_VOCABULARY");
static_assert((int)LEANSTREAM_LOAD_FULL == 2, "LEANSTREAM_LOAD_FULL");
static_assert((int)LEANSTREAM_KV_F16 == 0, "LEANSTREAM_KV_F16");
static_assert((int)LEANSTREAM_KV_Q8_0 == 1, "LEANSTREAM_KV_Q8_0");
static_assert((int)LEANSTREAM_STOP_EOS == 0, "LEANSTREAM_STOP_EOS");
static_assert((int)LEANSTREAM_STOP_LENGTH == 1, "LEANSTREAM_STOP_LENGTH");
static_assert((int)LEANSTREAM_STOP_STRING == 2, "LEANSTREAM_STOP_STRING");
static_assert((int)LEANSTREAM_STOP_CANCELLED == 3, "LEANSTREAM_STOP_CANCELLED");
static_assert((int)LEANSTREAM_BOUND_STORAGE == 0, "LEANSTREAM_BOUND_STORAGE");
static_assert((int)LEANSTREAM_BOUND_MEMORY == 1, "LEANSTREAM_BOUND_MEMORY");
static_assert((int)LEANSTREAM_BOUND_COMPUTE == 2, "LEANSTREAM_BOUND_COMPUTE");
