/*
 * Completes a prompt: the smallest whole program on the C interface.
 *
 *   cc generate.c $(pkg-config --cflags --libs leanstream) -o generate
 *   ./generate MODEL.gguf "Once upon a time" [MEMORY_BUDGET_BYTES]
 */
#include <leanstream/leanstream.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_text(const char* text, size_t length, void* user) {
  (void)user;
  return fwrite(text, 1, length, stdout) == length; /* a closed stdout stops generation */
}

/* Tokenizes the prompt into a new array, for the caller to free. NULL on an error. */
static leanstream_token* tokenize(const leanstream_model* model, const char* prompt, size_t* count,
                                  leanstream_error* error) {
  const uint32_t flags = LEANSTREAM_TOKENIZE_BOS;
  if (leanstream_tokenize(model, prompt, strlen(prompt), flags, NULL, 0, count, error) !=
      LEANSTREAM_ERROR_BUFFER_TOO_SMALL)
    return NULL;
  leanstream_token* tokens = malloc(*count * sizeof *tokens);
  if (tokens != NULL)
    leanstream_tokenize(model, prompt, strlen(prompt), flags, tokens, *count, count, error);
  return tokens;
}

static leanstream_status complete(leanstream_session* session, const leanstream_model* model, const char* prompt,
                                  leanstream_error* error) {
  size_t count = 0;
  leanstream_token* tokens = tokenize(model, prompt, &count, error);
  if (tokens == NULL) return error->status;
  leanstream_status status = leanstream_session_prefill(session, tokens, count, error);
  free(tokens);
  if (status != LEANSTREAM_OK) return status;

  leanstream_generate_params params;
  leanstream_generate_params_init(&params);
  params.max_tokens = 64;
  params.text = print_text;
  leanstream_generate_result result;
  result.struct_size = sizeof result;
  return leanstream_session_generate(session, &params, &result, error);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL.gguf PROMPT [MEMORY_BUDGET_BYTES]\n", argv[0]);
    return 2;
  }
  leanstream_runtime_params params;
  leanstream_runtime_params_init(&params);
  if (argc > 3) params.memory_budget_bytes = strtoull(argv[3], NULL, 10);

  leanstream_runtime* runtime = NULL;
  leanstream_model* model = NULL;
  leanstream_session* session = NULL;
  leanstream_error error;
  leanstream_status status = leanstream_runtime_create(&params, &runtime, &error);
  if (status == LEANSTREAM_OK) status = leanstream_model_open(runtime, argv[1], NULL, &model, &error);
  if (status == LEANSTREAM_OK) status = leanstream_session_create(model, NULL, &session, &error);
  if (status == LEANSTREAM_OK) status = complete(session, model, argv[2], &error);

  if (status == LEANSTREAM_OK) {
    leanstream_stats stats;
    stats.struct_size = sizeof stats;
    leanstream_session_get_stats(session, &stats, NULL);
    fprintf(stderr, "\n%.1f tokens/s, peak memory %.0f of %.0f MiB\n", 1000.0 * stats.decoded_tokens / stats.decode_ms,
            stats.peak_rss_bytes / 1048576.0, stats.memory_budget_bytes / 1048576.0);
  } else {
    fprintf(stderr, "%s: %s\n", leanstream_status_name(status), error.message);
  }
  leanstream_session_destroy(session);
  leanstream_model_destroy(model);
  leanstream_runtime_destroy(runtime);
  return status == LEANSTREAM_OK ? 0 : 1;
}
