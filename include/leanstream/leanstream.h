/*
 * LeanStream: a runtime for GGUF language models inside a memory budget that the caller names.
 *
 * This header is the whole C interface and its only specification.
 *
 * Objects
 *   leanstream_runtime   threads, SIMD target, memory budget, log      thread-safe
 *   leanstream_model     one opened model file, immutable              thread-safe
 *   leanstream_session   one sequence: KV cache, sampler, statistics   one thread at a time, except _cancel
 * A model borrows its runtime and a session borrows its model: destroy sessions, then models, then the runtime.
 * Every _destroy accepts NULL.
 *
 * Parameter structs
 *   Each begins with struct_size. Call its _init function, which sets struct_size and the defaults, then change what
 *   you want. A struct_size that this library does not know is LEANSTREAM_ERROR_INVALID_ARGUMENT.
 *
 * Errors
 *   Every call that can fail returns a leanstream_status and takes a leanstream_error, which may be NULL. On failure
 *   the error holds one sentence: what failed, on which thing, and why. Output arguments are then unchanged, except
 *   where said. No call throws, prints, exits or aborts on bad input. A NULL where an object or an output is required
 *   is LEANSTREAM_ERROR_INVALID_ARGUMENT.
 *
 * Text
 *   Text is bytes with a length, never NUL-terminated unless said; it may contain NUL bytes and invalid UTF-8. File
 *   paths are NUL-terminated. Functions that fill a buffer take `capacity` and report the full size in `*needed`;
 *   capacity 0 with a NULL buffer asks for the size. When the buffer is too small they return
 *   LEANSTREAM_ERROR_BUFFER_TOO_SMALL, with *needed set and nothing written.
 *
 * Threads
 *   Callbacks run on the thread that made the call, never on a worker. They must not call back into the same session.
 *   The calling thread is one of those that compute: opening a model with LEANSTREAM_LOAD_FULL, prefill, decode, score
 *   and generate need 384 KiB of stack, and return LEANSTREAM_ERROR_UNSUPPORTED on a thread that has less left.
 */
#ifndef LEANSTREAM_H
#define LEANSTREAM_H

#include <stddef.h>
#include <stdint.h>

#if defined(LEANSTREAM_STATIC)
#define LEANSTREAM_API
#elif defined(__GNUC__)
#define LEANSTREAM_API __attribute__((visibility("default")))
#else
#define LEANSTREAM_API
#endif

#define LEANSTREAM_VERSION_MAJOR 0
#define LEANSTREAM_VERSION_MINOR 1
#define LEANSTREAM_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leanstream_runtime leanstream_runtime;
typedef struct leanstream_model leanstream_model;
typedef struct leanstream_session leanstream_session;

/* A vocabulary id, 0 .. n_vocab-1. */
typedef int32_t leanstream_token;

/* ------------------------------------------------------------------------------------------------- status, error */

typedef enum leanstream_status {
  LEANSTREAM_OK = 0,
  LEANSTREAM_ERROR_INVALID_ARGUMENT = 1, /* the request makes no sense */
  LEANSTREAM_ERROR_NOT_FOUND = 2,        /* no such file, tensor or key */
  LEANSTREAM_ERROR_IO = 3,               /* the operating system failed a read, write or mapping */
  LEANSTREAM_ERROR_MALFORMED = 4,        /* the file breaks the rules of its format */
  LEANSTREAM_ERROR_UNSUPPORTED = 5,      /* valid, but not something this library does */
  LEANSTREAM_ERROR_OUT_OF_BUDGET = 6,    /* does not fit the memory budget; the sentence has the numbers */
  LEANSTREAM_ERROR_CONTEXT_FULL = 7,     /* the session has no position left */
  LEANSTREAM_ERROR_CANCELLED = 8,        /* a callback or leanstream_session_cancel asked to stop */
  LEANSTREAM_ERROR_NUMERIC = 9,          /* NaN among the logits */
  LEANSTREAM_ERROR_BUFFER_TOO_SMALL = 10,
  LEANSTREAM_ERROR_DEADLINE = 11,        /* a wait ran past its deadline */
  LEANSTREAM_ERROR_INTERNAL = 12         /* a bug in this library; please report it */
} leanstream_status;

typedef struct leanstream_error {
  leanstream_status status;
  char message[1020]; /* NUL-terminated UTF-8, one sentence, cut at the end if longer; "" after success */
} leanstream_error;

/* "0.1.0". Static. */
LEANSTREAM_API const char* leanstream_version(void);

/* "out of budget" for LEANSTREAM_ERROR_OUT_OF_BUDGET, and so on; "unknown status" otherwise. Static. */
LEANSTREAM_API const char* leanstream_status_name(leanstream_status status);

/* -------------------------------------------------------------------------------------------------------- runtime */

typedef enum leanstream_log_level {
  LEANSTREAM_LOG_DEBUG = 0,
  LEANSTREAM_LOG_INFO = 1,
  LEANSTREAM_LOG_WARN = 2,
  LEANSTREAM_LOG_ERROR = 3
} leanstream_log_level;

/* One line, `length` bytes, no newline. Valid during the call only. */
typedef void (*leanstream_log_callback)(leanstream_log_level level, const char* text, size_t length, void* user);

typedef struct leanstream_runtime_params {
  size_t struct_size;
  uint64_t memory_budget_bytes; /* hard cap on what the process holds (peak RSS); 0 = what MemAvailable and the cgroup
                                   allow, less 10 % */
  uint32_t threads;             /* compute threads, the caller's included, at most 256; 0 = one for each CPU that this
                                   process may use (affinity, cgroup quota) */
  const char* simd;             /* NULL = the best this CPU runs; else one of "avx512vnni" "avx2" "neon-dotprod" "portable" */
  leanstream_log_callback log;  /* NULL = silent */
  void* log_user;
  const char* state_dir;        /* folder where a drive's measured bandwidth is kept, made where it is missing; NULL =
                                   drives are not measured */
  const char* emulate_storage;  /* NULL = the drive as it is; else one to imitate when weights are streamed, by request size:
                                   "2.0GB/s@64K:3.5GB/s@256K,lat=90us" */
  const char* io;               /* NULL or "auto" = io_uring, or pread threads where it is refused; "io_uring"; "pread" */
} leanstream_runtime_params;

/* Nothing here points into the library except the two names, which are static. */
typedef struct leanstream_runtime_info {
  size_t struct_size;           /* set by the caller, as for parameter structs */
  uint64_t memory_budget_bytes; /* the budget in force */
  uint64_t memory_held_bytes;   /* of it, taken now by models and sessions, the process's fixed cost included */
  uint32_t threads;
  const char* simd;        /* "avx512vnni" */
  const char* backend;     /* "cpu" */
  char device_name[128];   /* NUL-terminated, as the system names it */
} leanstream_runtime_info;

LEANSTREAM_API void leanstream_runtime_params_init(leanstream_runtime_params* params);

/* params may be NULL for the defaults. Errors: INVALID_ARGUMENT (threads above 256, emulate_storage or io), UNSUPPORTED (no such simd here),
 * OUT_OF_BUDGET (a budget below the process's fixed cost), IO. */
LEANSTREAM_API leanstream_status leanstream_runtime_create(const leanstream_runtime_params* params,
                                                           leanstream_runtime** out, leanstream_error* error);
LEANSTREAM_API void leanstream_runtime_destroy(leanstream_runtime* runtime);
LEANSTREAM_API leanstream_status leanstream_runtime_get_info(const leanstream_runtime* runtime,
                                                             leanstream_runtime_info* info, leanstream_error* error);

/* ---------------------------------------------------------------------------------------------------------- model */

/* How much of a file to open. Each level can do what the ones before it can. */
typedef enum leanstream_load_mode {
  LEANSTREAM_LOAD_METADATA = 0,   /* describe only; any well-formed GGUF file */
  LEANSTREAM_LOAD_VOCABULARY = 1, /* and tokenize; vocabulary-only files are enough */
  LEANSTREAM_LOAD_FULL = 2        /* and run sessions */
} leanstream_load_mode;

/* fraction goes from 0 to 1 and never back. Return 0 to cancel, anything else to go on. Called at least every 50 ms while
 * weights are read. */
typedef int (*leanstream_progress_callback)(float fraction, void* user);

typedef struct leanstream_model_params {
  size_t struct_size;
  leanstream_load_mode mode;          /* default LEANSTREAM_LOAD_FULL */
  leanstream_progress_callback progress; /* may be NULL */
  void* progress_user;
  const struct leanstream_session_params* session; /* where weights are streamed, the session that the budget leaves
                                                      room for; NULL = one with the defaults */
  const char* chat_template;          /* a family of chat templates to use instead of the file's own, NUL-terminated:
                                         "chatml" "llama2" "llama3" "mistral" "mistral-v1" "mistral-v3"
                                         "mistral-v3-tekken" "mistral-v7" "mistral-v7-tekken" "gemma" "phi3" "phi4"
                                         "zephyr" "deepseek-r1"; NULL = the file's */
} leanstream_model_params;

typedef struct leanstream_model_info {
  size_t struct_size;
  char architecture[64];     /* "llama", NUL-terminated; likewise name and type */
  char name[256];            /* general.name, or "" */
  char weight_type[32];      /* the type that holds most bytes: "Q4_0" */
  uint64_t file_bytes;       /* all parts of a split together */
  uint64_t parameters;       /* elements of all tensors */
  uint64_t weight_bytes;     /* tensor bytes in the file; a tied output counts once */
  uint32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim;
  uint32_t n_vocab;
  uint32_t context_length;   /* trained context, positions */
  leanstream_token bos, eos; /* -1 where the vocabulary has none */
  int32_t adds_bos;          /* 1 when tokenizing begins a text with BOS */
  int32_t has_chat_template; /* 1 when one was asked for, or the file has one of a known family */
  char chat_family[32];      /* "chatml", "llama2", "llama3", "mistral", "gemma", ... or "" */
} leanstream_model_info;

LEANSTREAM_API void leanstream_model_params_init(leanstream_model_params* params);

/* Opens a GGUF file (of a split set: the first part). Everything in its head is checked before any weight is read.
 * Weights that do not fit the runtime's budget are streamed from the file with every token, with the same results; a
 * budget that is too small even for that is refused before a weight is read. Errors: NOT_FOUND, IO, MALFORMED,
 * UNSUPPORTED (architecture, tensor type or tokenizer, by name), OUT_OF_BUDGET, CANCELLED (by progress),
 * INVALID_ARGUMENT (a chat_template that is none: the sentence lists them). */
LEANSTREAM_API leanstream_status leanstream_model_open(leanstream_runtime* runtime, const char* path,
                                                       const leanstream_model_params* params, leanstream_model** out,
                                                       leanstream_error* error);
LEANSTREAM_API void leanstream_model_destroy(leanstream_model* model);

/* Fields that need the vocabulary are 0, -1 or "" for a model opened with LEANSTREAM_LOAD_METADATA; those of the shape
 * are 0 for a file of an architecture that this library does not run. */
LEANSTREAM_API leanstream_status leanstream_model_get_info(const leanstream_model* model, leanstream_model_info* info,
                                                           leanstream_error* error);

/* The whole head of the file as one JSON object: {"files": [{"path", "bytes"}], "version", "alignment", "metadata":
 * {key: value}, "tensors": [{"name", "type", "dims", "bytes", "offset", "file"}]}, and for a pack "pack": {"kind", "source":
 * {"name", "bytes", "xxh3"}, "layers": [{"tiles", "tile_neurons", "tile_bytes", "gate", "up", "down"}]}. Arrays longer than
 * max_array (0 = no limit) are given as {"array": element type, "length": n}. Text that is not UTF-8 has its bad bytes
 * replaced by U+FFFD. */
LEANSTREAM_API leanstream_status leanstream_model_describe(const leanstream_model* model, size_t max_array, char* buffer,
                                                           size_t capacity, size_t* needed, leanstream_error* error);

/* ----------------------------------------------------------------------------------------------------------- plan */

typedef enum leanstream_kv_type { LEANSTREAM_KV_F16 = 0, LEANSTREAM_KV_Q8_0 = 1 } leanstream_kv_type;

typedef struct leanstream_session_params {
  size_t struct_size;
  uint32_t context;           /* positions; 0 = the least of the model's, 4096 and what the budget allows (where weights
                                 are streamed: what an eighth of it allows) */
  leanstream_kv_type kv_type; /* default F16 */
  uint32_t max_logits;        /* most positions that leanstream_session_decode takes at once, 1 .. 32; default 1 */
  int (*abort)(void* user);   /* polled at least every 20 ms while computing; not 0 cancels the call; may be NULL */
  void* abort_user;
} leanstream_session_params;

/* A part of the weights, in the file's bytes, and how much of it is resident; the rest is streamed. */
typedef struct leanstream_plan_part {
  uint64_t bytes, resident_bytes;
} leanstream_plan_part;

typedef struct leanstream_plan {
  size_t struct_size;
  uint64_t weights_bytes;     /* held resident */
  uint64_t kv_bytes;          /* for `context` positions */
  uint64_t buffers_bytes;     /* activations, logits, tables, vocabulary; staging while loading, if that is more */
  uint64_t fixed_bytes;       /* the process: code, heap, stacks; and what other models and all sessions hold now */
  uint64_t total_bytes;       /* the four above and ring_bytes */
  uint64_t budget_bytes;
  uint32_t context;           /* as asked, or as chosen for 0: a multiple of 32 where the budget decides */
  int32_t fits;               /* 1 when total_bytes <= budget_bytes */
  uint64_t least_budget_bytes;/* the smallest budget for which this plan would fit, in whole MiB */
  uint64_t bytes_per_token;   /* weight bytes that decoding one token uses */
  uint64_t ring_bytes;        /* memory for streamed weights on their way; 0 when nothing streams */
  uint64_t streamed_bytes;    /* of bytes_per_token, those that come from the drive with every token */
  uint64_t request_bytes;     /* what one read of the drive is about */
  double storage_bytes_per_s; /* what the drive gives for such reads, as measured; 0 when not measured */
  leanstream_plan_part embedding; /* a table that is also the output counts there; rows that are not resident are read
                                     as their tokens come */
  leanstream_plan_part attention, mlp, output, norms;
} leanstream_plan;

LEANSTREAM_API void leanstream_session_params_init(leanstream_session_params* params);

/* What running the model would take under the runtime's budget, before a weight is read. Not fitting is no error:
 * see fits. `model` may be opened with any mode. Errors: UNSUPPORTED or MALFORMED for a model that cannot run, and those of
 * leanstream_session_create for params. params may be NULL for the defaults. */
LEANSTREAM_API leanstream_status leanstream_model_plan(const leanstream_model* model,
                                                       const leanstream_session_params* params, leanstream_plan* plan,
                                                       leanstream_error* error);

/* ----------------------------------------------------------------------------------------------------- vocabulary */

/* Begin with BOS where the model adds one. */
#define LEANSTREAM_TOKENIZE_BOS 1u
/* Text that spells a control token ("<|im_end|>") becomes that token; otherwise it is plain text. */
#define LEANSTREAM_TOKENIZE_SPECIAL 2u

/* Writes ids to tokens[0 .. *needed). Invalid UTF-8 is encoded byte by byte where the vocabulary can, else as U+FFFD.
 * Errors: BUFFER_TOO_SMALL, INVALID_ARGUMENT (text_length above 2^31). */
LEANSTREAM_API leanstream_status leanstream_tokenize(const leanstream_model* model, const char* text,
                                                     size_t text_length, uint32_t flags, leanstream_token* tokens,
                                                     size_t capacity, size_t* needed, leanstream_error* error);

/* The text of a token sequence, as bytes. Control tokens are left out unless LEANSTREAM_TOKENIZE_SPECIAL is set. A
 * single token may be part of a character. Errors: BUFFER_TOO_SMALL, INVALID_ARGUMENT (an id outside the vocabulary). */
LEANSTREAM_API leanstream_status leanstream_detokenize(const leanstream_model* model, const leanstream_token* tokens,
                                                       size_t count, uint32_t flags, char* buffer, size_t capacity,
                                                       size_t* needed, leanstream_error* error);

/* 1 when the token ends generation (EOS, end of turn), else 0; 0 for an id outside the vocabulary. */
LEANSTREAM_API int leanstream_token_ends_generation(const leanstream_model* model, leanstream_token token);

typedef struct leanstream_chat_message {
  const char* role;    /* "system", "user" or "assistant", NUL-terminated */
  const char* content; /* content_length bytes */
  size_t content_length;
} leanstream_chat_message;

/* The conversation as the model's chat template lays it out, for people to look at (the text never holds the BOS that
 * tokenizing adds); leanstream_chat_tokenize is what to prefill. add_reply_start: end with the opening of the
 * assistant's turn. Errors: UNSUPPORTED (no template, or of a family we do not know: the sentence
 * quotes its beginning), INVALID_ARGUMENT (a role the template does not have), BUFFER_TOO_SMALL. */
LEANSTREAM_API leanstream_status leanstream_chat_format(const leanstream_model* model,
                                                        const leanstream_chat_message* messages, size_t count,
                                                        int add_reply_start, char* buffer, size_t capacity,
                                                        size_t* needed, leanstream_error* error);

/* The same as tokens, BOS first where the model adds one. Only the template's own text becomes control tokens: a
 * message that spells one ("<|im_end|>") stays text, also where text and template together would spell one. Errors as
 * for leanstream_chat_format. */
LEANSTREAM_API leanstream_status leanstream_chat_tokenize(const leanstream_model* model,
                                                          const leanstream_chat_message* messages, size_t count,
                                                          int add_reply_start, leanstream_token* tokens,
                                                          size_t capacity, size_t* needed, leanstream_error* error);

/* -------------------------------------------------------------------------------------------------------- session */

/* Errors: OUT_OF_BUDGET, INVALID_ARGUMENT (context above the model's, max_logits above 32), UNSUPPORTED (a model not
 * opened with LEANSTREAM_LOAD_FULL; head_dim no multiple of 32 with Q8_0). params may be NULL for the defaults. */
LEANSTREAM_API leanstream_status leanstream_session_create(leanstream_model* model,
                                                           const leanstream_session_params* params,
                                                           leanstream_session** out, leanstream_error* error);
LEANSTREAM_API void leanstream_session_destroy(leanstream_session* session);

/* Positions in the KV cache, and how many it can hold. */
LEANSTREAM_API uint32_t leanstream_session_position(const leanstream_session* session);
LEANSTREAM_API uint32_t leanstream_session_context(const leanstream_session* session);

/* The tokens in the KV cache, leanstream_session_position of them. What a new prompt has in common with them need not be
 * prefilled again: truncate to that length, then prefill the rest. Valid until the session's next call. */
LEANSTREAM_API const leanstream_token* leanstream_session_tokens(const leanstream_session* session);

/* Appends a prompt, in chunks of a fixed length; afterwards logits of its last position are at index 0. On any error
 * the cache is as before the call, and there are no logits. Errors: CONTEXT_FULL (with both numbers; nothing appended), INVALID_ARGUMENT (an id outside
 * the vocabulary, count 0), CANCELLED, NUMERIC. */
LEANSTREAM_API leanstream_status leanstream_session_prefill(leanstream_session* session, const leanstream_token* tokens,
                                                            size_t count, leanstream_error* error);

/* Appends 1 .. max_logits tokens at once; afterwards logits of each are at indices 0 .. count-1. The result of each
 * position is bit for bit what decoding one by one gives. Errors as for prefill. */
LEANSTREAM_API leanstream_status leanstream_session_decode(leanstream_session* session, const leanstream_token* tokens,
                                                           size_t count, leanstream_error* error);

/* Appends tokens as prefill does and writes nll[i] = -log p(tokens[i + 1] | everything up to i), natural logarithm,
 * for i in [0, count - 1); nll may be NULL for count 1. max_logits positions are projected onto the vocabulary at a time:
 * larger is faster. On an error nll holds nothing meaningful. Errors as for prefill. */
LEANSTREAM_API leanstream_status leanstream_session_score(leanstream_session* session, const leanstream_token* tokens,
                                                          size_t count, double* nll, leanstream_error* error);

/* n_vocab logits of the last call's position `index`; NULL when there is none. Valid until the session's next call. */
LEANSTREAM_API const float* leanstream_session_logits(const leanstream_session* session, uint32_t index);

/* Forgets every position from `position` on; logits of the positions that stay, stay, at their indices. Errors: INVALID_ARGUMENT (position above the current one). */
LEANSTREAM_API leanstream_status leanstream_session_truncate(leanstream_session* session, uint32_t position,
                                                             leanstream_error* error);

/* Makes the session's running call return LEANSTREAM_ERROR_CANCELLED, or its next one if none runs; of prefill, decode,
 * score and generate. Any thread, or a signal handler. NULL does nothing. */
LEANSTREAM_API void leanstream_session_cancel(leanstream_session* session);

/* Records to the file `path`, from now on, which neurons each position demands, whatever call appends it: all of them
 * where `top` is 0, else in each layer the share `top` (below 1) of largest |act(gate) * up| * ||down column||, those of
 * which this is 0 left out. docs/trace.md describes the file. It appears with leanstream_session_finish_trace; a session
 * that is destroyed before leaves none. A failing write fails the call that appended. Errors: INVALID_ARGUMENT (top; a
 * trace is being recorded already), IO, OUT_OF_BUDGET, UNSUPPORTED (a file whose neurons cannot be told apart). */
LEANSTREAM_API leanstream_status leanstream_session_start_trace(leanstream_session* session, const char* path, double top,
                                                                leanstream_error* error);
/* Completes the file. Afterwards nothing is recorded, whatever is returned. Errors: INVALID_ARGUMENT (no trace is being
 * recorded), IO. */
LEANSTREAM_API leanstream_status leanstream_session_finish_trace(leanstream_session* session, leanstream_error* error);

/* ------------------------------------------------------------------------------------------- sampling, generation */

typedef struct leanstream_sampling_params {
  size_t struct_size;
  float temperature;      /* 0 = greedy: the largest logit, lowest id on ties; default 0.8 */
  uint32_t top_k;         /* 0 = off; default 40 */
  float top_p;            /* 1 = off; default 0.95 */
  float min_p;            /* 0 = off; default 0.05 */
  float repeat_penalty;   /* 1 = off; default 1.0 */
  int32_t repeat_last_n;  /* tokens the penalty looks back over: 0 = off, -1 = the context; default 64 */
  uint64_t seed;          /* default 0; the same seed gives the same text */
} leanstream_sampling_params;

LEANSTREAM_API void leanstream_sampling_params_init(leanstream_sampling_params* params);

/* Sets the sampler and restarts its random numbers at the seed. A new session has the default parameters. Errors:
 * INVALID_ARGUMENT, naming the parameter and its range. */
LEANSTREAM_API leanstream_status leanstream_session_set_sampling(leanstream_session* session,
                                                                 const leanstream_sampling_params* params,
                                                                 leanstream_error* error);

/* Samples from the logits at `index`; does not append. Errors: NUMERIC (NaN), INVALID_ARGUMENT (no logits there). */
LEANSTREAM_API leanstream_status leanstream_session_sample(leanstream_session* session, uint32_t index,
                                                           leanstream_token* token, leanstream_error* error);

/* A piece of generated text: whole characters only, stop strings never. Return 0 to stop, anything else to go on. */
typedef int (*leanstream_text_callback)(const char* text, size_t length, void* user);

typedef enum leanstream_stop_reason {
  LEANSTREAM_STOP_EOS = 0,       /* the model ended it */
  LEANSTREAM_STOP_LENGTH = 1,    /* max_tokens, or the context is full */
  LEANSTREAM_STOP_STRING = 2,    /* a stop string */
  LEANSTREAM_STOP_CANCELLED = 3  /* a callback or leanstream_session_cancel */
} leanstream_stop_reason;

typedef struct leanstream_generate_params {
  size_t struct_size;
  int64_t max_tokens;               /* -1 = until the model stops or the context is full; default -1 */
  int32_t ignore_eos;               /* not 0: go on past end tokens */
  const char* const* stop;          /* n_stop strings, NUL-terminated, none empty */
  size_t n_stop;
  leanstream_text_callback text;    /* may be NULL */
  void* text_user;
} leanstream_generate_params;

typedef struct leanstream_generate_result {
  size_t struct_size;
  leanstream_stop_reason reason;
  uint64_t tokens;                /* sampled, an end token not counted */
  leanstream_token waiting_token; /* the last of them where it is not in the cache yet, else -1 */
} leanstream_generate_result;

LEANSTREAM_API void leanstream_generate_params_init(leanstream_generate_params* params);

/* Samples and appends, token by token, from the logits of the last prefill or decode. Cancelling is no error: see
 * reason. Text held back for a stop string or an unfinished character is given out before returning, unless the text
 * callback said stop. Every sampled token but an end token and the last one is in the cache afterwards. The last one
 * waits: the next generate appends it first and goes on as if there had been no break; prefill, decode, score and
 * truncate forget it, so begin a prefill with it where it matters. params may be NULL for the defaults. Errors:
 * INVALID_ARGUMENT (no logits yet), NUMERIC, IO; the tokens before the error stay. */
LEANSTREAM_API leanstream_status leanstream_session_generate(leanstream_session* session,
                                                             const leanstream_generate_params* params,
                                                             leanstream_generate_result* result,
                                                             leanstream_error* error);

/* ----------------------------------------------------------------------------------------------------- statistics */

/* What bounded the speed of decoding: STORAGE where compute waited for it for a tenth of the time or more. Otherwise MEMORY:
 * decoding one position uses each weight once, for two operations, far fewer than a CPU does in the time of reading it. */
typedef enum leanstream_bound { LEANSTREAM_BOUND_STORAGE = 0, LEANSTREAM_BOUND_MEMORY = 1, LEANSTREAM_BOUND_COMPUTE = 2 } leanstream_bound;

typedef struct leanstream_stats {
  size_t struct_size;
  uint64_t prompt_tokens;     /* by prefill and score, since the session began */
  uint64_t generated_tokens;  /* by decode and generate */
  uint64_t decoded_tokens;    /* of them, those that went through the model in decode_ms: what tokens/s is made of */
  double load_ms;             /* opening the model */
  double ttft_ms;             /* from the start of the last prefill to the first sampled token; 0 before */
  double prefill_ms;          /* in prefill and score */
  double decode_ms;           /* in decode, sample and generate, the text callback apart */
  uint64_t peak_rss_bytes;    /* VmHWM of the process */
  uint64_t device_bytes;      /* memory on a discrete device; 0 on a CPU */
  uint64_t memory_budget_bytes;
  uint64_t bytes_read;        /* from storage, by this model: loading included */
  uint64_t bytes_read_decode; /* of them, while this session decoded */
  double io_wait_ms;          /* during which at least one compute thread waited for storage, loading apart */
  double cache_hit_ratio;     /* of weight bytes used while decoding, those that were resident: 1 when everything fits */
  uint64_t bytes_per_token;   /* weight bytes that one decoded token uses */
  leanstream_bound bound_by;
  char io_engine[16];         /* what streams weights: "io_uring", "pread", or "" when nothing does */
  int32_t io_direct;          /* 1: past the page cache; likewise whether the kernel granted the following */
  int32_t io_registered_buffers, io_registered_files, io_huge_pages;
} leanstream_stats;

/* The caller sets stats->struct_size. */
LEANSTREAM_API leanstream_status leanstream_session_get_stats(const leanstream_session* session, leanstream_stats* stats,
                                                              leanstream_error* error);

#ifdef __cplusplus
}
#endif

#endif /* LEANSTREAM_H */
