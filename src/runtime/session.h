#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/decoder.h"
#include "model/sampler.h"
#include "runtime/abort_hook.h"
#include "runtime/memory_budget.h"
#include "runtime/memory_plan.h"
#include "runtime/open_model.h"
#include "runtime/statistics.h"
#include "runtime/trace_recorder.h"

namespace leanstream::runtime {

using model::Token;

enum class StopReason { kEos = 0, kLength = 1, kString = 2, kCancelled = 3 };

struct GenerateParams {
  int64_t max_tokens = -1;  // -1: until the model stops or the context is full
  bool ignore_eos = false;
  std::vector<std::string> stop_strings;
  // Whole characters, never a stop string; returning 0 stops. May be nullptr.
  int (*text)(const char* text, size_t length, void* user) = nullptr;
  void* text_user = nullptr;
};

struct GenerateResult {
  StopReason reason = StopReason::kEos;
  uint64_t tokens = 0;       // sampled, an end token not counted
  Token waiting_token = -1;  // the last one sampled, where it is not in the cache yet
};

// One sequence of tokens: its KV cache, the logits of its last positions, its sampler and its statistics. A call that
// fails leaves the sequence as it was, without logits. Externally synchronised, except cancel(); borrows the model.
class Session {
 public:
  // Errors: see leanstream_session_create.
  static Result<std::unique_ptr<Session>> create(const OpenModel& model, const SessionShape& shape, AbortHook abort);

  uint32_t position() const { return decoder_->position(); }
  uint32_t context() const { return decoder_->context(); }
  const Token* tokens() const { return history_.data(); }  // position() of them
  const OpenModel& model() const { return model_; }
  const Statistics& statistics() const { return statistics_; }

  // Errors: see the functions of the same names in leanstream.h.
  Status prefill(std::span<const Token> tokens);
  Status decode(std::span<const Token> tokens);
  Status score(std::span<const Token> tokens, double* nll);
  Status truncate(uint32_t position);
  Status set_sampling(const model::SamplingParams& params);
  Result<Token> sample(uint32_t index);
  Result<GenerateResult> generate(const GenerateParams& params);
  Status start_trace(const std::string& path, double top);
  Status finish_trace();

  // [n_vocab] of the last call's position `index`; nullptr when there are none. Valid until the next call.
  const float* logits(uint32_t index) const;

  // Any thread, or a signal handler.
  void cancel() { cancel_requested_.store(true, std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  Session(const OpenModel& model, MemoryHold hold, std::unique_ptr<engine::Decoder> decoder, model::Sampler sampler,
          uint32_t max_logits, AbortHook abort);

  Status check_tokens(std::span<const Token> tokens, const char* what) const;

  // Appends all of `tokens` or none, then projects the last `logits_count`. nll: as score() has it, or nullptr.
  Status append(std::span<const Token> tokens, uint32_t logits_count, double* nll);
  // The same for the end of history_, from position `before` on.
  Status run_chunks(uint32_t before, uint32_t logits_count, double* nll);
  // nll of the `count` positions of the chunk just run, at `first`, that have a next token.
  Status score_chunk(uint32_t first, uint32_t count, double* nll);
  Status project(uint32_t first_row, uint32_t count);

  Result<Token> sample_row(uint32_t row);
  Status append_waiting_token();
  void forget_logits() { logits_count_ = 0; }

  // Consumes a request to stop; once true, true until the call ends.
  bool stop_requested();
  static bool stop_hook(void* session) { return static_cast<Session*>(session)->stop_requested(); }

  const OpenModel& model_;
  const MemoryHold hold_;
  const std::unique_ptr<engine::Decoder> decoder_;
  model::Sampler sampler_;
  const uint32_t max_logits_;
  const AbortHook abort_;
  std::vector<Token> history_;  // the tokens in the cache; capacity context()
  uint32_t logits_count_ = 0;   // rows of decoder_->logits() that hold, the last of them the last position's
  Token waiting_token_ = -1;    // sampled by generate(), not in the cache yet
  bool stopping_ = false;       // this call has been asked to stop
  std::optional<Clock::time_point> first_token_due_since_;  // the last prefill's start, until a token is sampled
  Statistics statistics_;
  std::unique_ptr<TraceRecorder> recorder_;  // nullptr: nothing is recorded

  // Relaxed: nothing is passed along with it. Lock-free, so a signal handler may set it.
  std::atomic<bool> cancel_requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
};

}  // namespace leanstream::runtime
