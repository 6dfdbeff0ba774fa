/*
 * usage: budget_probe MODEL BUDGET_BYTES CONTEXT
 * A whole run under a budget, in a process of its own: opens, prefills half the context, decodes, scores. Prints one line
 * "peak P held H budget B", or the error; exit status: the leanstream_status.
 */
#include <leanstream/leanstream.h>
#include <stdio.h>
#include <stdlib.h>

static leanstream_status use(leanstream_session* session, leanstream_error* error) {
  const uint32_t half = leanstream_session_context(session) / 2;
  leanstream_token* tokens = calloc(half, sizeof *tokens);
  double* nll = calloc(half, sizeof *nll);
  leanstream_status status = LEANSTREAM_ERROR_INTERNAL;
  if (tokens != NULL && nll != NULL) {
    for (uint32_t i = 0; i < half; ++i) tokens[i] = (leanstream_token)(3 + i % 200);
    status = leanstream_session_prefill(session, tokens, half, error);
    leanstream_generate_params params;
    leanstream_generate_params_init(&params);
    params.max_tokens = 8;
    params.ignore_eos = 1;
    leanstream_generate_result result;
    result.struct_size = sizeof result;
    if (status == LEANSTREAM_OK) status = leanstream_session_generate(session, &params, &result, error);
    if (status == LEANSTREAM_OK) status = leanstream_session_truncate(session, 0, error);
    if (status == LEANSTREAM_OK) status = leanstream_session_score(session, tokens, half, nll, error);
  }
  free(nll);
  free(tokens);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 4) return 100;
  leanstream_runtime_params runtime_params;
  leanstream_runtime_params_init(&runtime_params);
  runtime_params.memory_budget_bytes = strtoull(argv[2], NULL, 10);
  leanstream_session_params session_params;
  leanstream_session_params_init(&session_params);
  session_params.context = (uint32_t)strtoul(argv[3], NULL, 10);
  leanstream_model_params model_params;
  leanstream_model_params_init(&model_params);
  model_params.session = &session_params;

  leanstream_runtime* runtime = NULL;
  leanstream_model* model = NULL;
  leanstream_session* session = NULL;
  leanstream_error error;
  leanstream_status status = leanstream_runtime_create(&runtime_params, &runtime, &error);
  if (status == LEANSTREAM_OK) status = leanstream_model_open(runtime, argv[1], &model_params, &model, &error);
  if (status == LEANSTREAM_OK) status = leanstream_session_create(model, &session_params, &session, &error);
  if (status == LEANSTREAM_OK) status = use(session, &error);
  if (status == LEANSTREAM_OK) {
    leanstream_stats stats;
    stats.struct_size = sizeof stats;
    leanstream_session_get_stats(session, &stats, NULL);
    leanstream_runtime_info info;
    info.struct_size = sizeof info;
    leanstream_runtime_get_info(runtime, &info, NULL);
    printf("peak %llu held %llu budget %llu\n", (unsigned long long)stats.peak_rss_bytes,
           (unsigned long long)info.memory_held_bytes, (unsigned long long)stats.memory_budget_bytes);
  } else {
    printf("%s\n", error.message);
  }
  leanstream_session_destroy(session);
  leanstream_model_destroy(model);
  leanstream_runtime_destroy(runtime);
  return (int)status;
}
