#include "runtime/session.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "runtime/meters.h"

namespace leanstream::runtime {
namespace {

Status nan_at(size_t position) {
  return {Code::kNumeric, "cannot use the logits of position " + std::to_string(position) + ": NaN among them"};
}

const char* why_context(const SessionShape& asked, const MemoryPlan& plan, const model::Config& config) {
  if (asked.context != 0) return "as asked";
  if (plan.context == config.context_length) return "the model's";
  return plan.context == kDefaultContext ? "the default" : "what the budget allows";
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(const OpenModel& model, const SessionShape& shape, AbortHook abort) {
  const model::Weights* weights = model.weights();
  if (weights == nullptr)
    return unsupported("cannot create a session: " + model.path() + " was not opened with LEANSTREAM_LOAD_FULL");
  const Result<MemoryPlan> plan = model.plan(shape);
  if (!plan.ok()) return plan.status();
  if (!plan->fits()) {
    const Status refusal = plan->refusal("create a session of " + model.path());
    if (model.stream() == nullptr) return refusal;
    return out_of_budget(refusal.message() + ", if the model is opened for such a session");
  }

  const Runtime& runtime = model.runtime();
  const model::Config& config = *model.config();
  SessionShape sized = shape;
  sized.context = plan->context;
  const SessionNeeds needs = session_needs(config, sized, runtime.team().size());
  std::optional<MemoryHold> hold = runtime.memory().take(needs.kv_bytes + needs.buffers_bytes);
  if (!hold) return plan->refusal("create a session of " + model.path() + " beside those created meanwhile");

  Result<std::unique_ptr<engine::Decoder>> decoder = engine::Decoder::create(
      config, *weights, model.stream(), runtime.kernels(), runtime.team(), decoder_params(sized));
  if (!decoder.ok()) return decoder.status();
  Result<model::Sampler> sampler = model::Sampler::create({}, config.n_vocab);
  if (!sampler.ok()) return sampler.status();

  runtime.log().info("context: " + std::to_string(plan->context) + " positions (" + why_context(shape, *plan, config) +
                     "), KV cache " + format_bytes(needs.kv_bytes) + ", buffers " + format_bytes(needs.buffers_bytes));
  return std::unique_ptr<Session>(
      new Session(model, *std::move(hold), *std::move(decoder), *std::move(sampler), shape.max_logits, abort));
}

Session::Session(const OpenModel& model, MemoryHold hold, std::unique_ptr<engine::Decoder> decoder,
                 model::Sampler sampler, uint32_t max_logits, AbortHook abort)
    : model_(model),
      hold_(std::move(hold)),
      decoder_(std::move(decoder)),
      sampler_(std::move(sampler)),
      max_logits_(max_logits),
      abort_(abort) {
  history_.reserve(decoder_->context());
}

Status Session::prefill(std::span<const Token> tokens) {
  if (Status status = check_tokens(tokens, "prefill"); !status.ok()) return status;
  stopping_ = false;
  const Clock::time_point start = Clock::now();
  {
    const Stopwatch watch(statistics_.prefill_ms);
    if (Status status = append(tokens, 1, nullptr); !status.ok()) return status.with_context("cannot prefill");
  }
  statistics_.prompt_tokens += tokens.size();
  first_token_due_since_ = start;
  return {};
}

Status Session::decode(std::span<const Token> tokens) {
  if (tokens.size() > max_logits_)
    return invalid_argument("cannot decode " + std::to_string(tokens.size()) +
                            " tokens at once: the session was created with max_logits " + std::to_string(max_logits_));
  if (Status status = check_tokens(tokens, "decode"); !status.ok()) return status;
  stopping_ = false;
  const DecodeMeter meter(model_.stream(), statistics_);
  Status status = append(tokens, static_cast<uint32_t>(tokens.size()), nullptr);
  if (!status.ok()) return status.with_context("cannot decode");
  statistics_.decoded_tokens += tokens.size();
  statistics_.generated_tokens += tokens.size();
  return {};
}

Status Session::score(std::span<const Token> tokens, double* nll) {
  if (Status status = check_tokens(tokens, "score"); !status.ok()) return status;
  stopping_ = false;
  const Stopwatch watch(statistics_.prefill_ms);
  if (Status status = append(tokens, 1, nll); !status.ok()) return status.with_context("cannot score");
  statistics_.prompt_tokens += tokens.size();
  return {};
}

Status Session::truncate(uint32_t position_wanted) {
  if (position_wanted > position())
    return invalid_argument("cannot truncate to position " + std::to_string(position_wanted) +
                            ": the session is at position " + std::to_string(position()));
  // Logits of the positions that stay, stay: the first rows.
  const uint32_t dropped = position() - position_wanted;
  logits_count_ -= std::min(logits_count_, dropped);
  decoder_->truncate(position_wanted);
  history_.resize(position_wanted);
  waiting_token_ = -1;
  return {};
}

const float* Session::logits(uint32_t index) const {
  return index < logits_count_ ? decoder_->logits(index) : nullptr;
}

Status Session::check_tokens(std::span<const Token> tokens, const char* what) const {
  if (tokens.empty()) return invalid_argument(std::string("cannot ") + what + " no tokens: at least one is needed");
  const uint32_t n_vocab = model_.config()->n_vocab;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= n_vocab)
      return invalid_argument(std::string("cannot ") + what + " token " + std::to_string(tokens[i]) + " at index " +
                              std::to_string(i) + ": the vocabulary has ids from 0 to " + std::to_string(n_vocab - 1));
  return {};
}

Status Session::start_trace(const std::string& path, double top) {
  if (recorder_) return invalid_argument("cannot record to " + path + ": the session is being recorded already");
  Result<std::unique_ptr<TraceRecorder>> recorder =
      TraceRecorder::create(model_, path, top, std::min(context(), engine::kPromptChunk));
  if (!recorder.ok()) return recorder.status().with_context("cannot record to " + path);
  recorder_ = *std::move(recorder);
  decoder_->observe_hidden(recorder_->observer());
  return {};
}

Status Session::finish_trace() {
  if (!recorder_) return invalid_argument("cannot finish a trace: the session is not being recorded");
  decoder_->observe_hidden(nullptr);
  const std::unique_ptr<TraceRecorder> recorder = std::move(recorder_);
  return recorder->finish();
}

Status Session::append(std::span<const Token> tokens, uint32_t logits_count, double* nll) {
  if (Status status = engine::WorkerTeam::check_calling_thread(); !status.ok()) return status;
  const uint32_t before = position();
  if (tokens.size() > context() - before)
    return {Code::kContextFull, std::to_string(tokens.size()) + " tokens more at position " + std::to_string(before) +
                                    " do not fit the context of " + std::to_string(context()) + " positions"};
  forget_logits();
  waiting_token_ = -1;
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  Status status = run_chunks(before, logits_count, nll);
  // A stop that came too late to stop anything counts all the same: its request is used up.
  if (status.ok() && stopping_) status = cancelled("cancelled at its end");
  if (!status.ok()) {
    decoder_->truncate(before);
    history_.resize(before);
    forget_logits();
  }
  return status;
}

Status Session::run_chunks(uint32_t before, uint32_t logits_count, double* nll) {
  const uint32_t end = static_cast<uint32_t>(history_.size());
  for (uint32_t first = before; first < end;) {
    if (stop_requested()) return cancelled("cancelled at position " + std::to_string(first));
    const uint32_t count = std::min({end - first, context(), engine::kPromptChunk});
    const std::span<const Token> chunk(history_.data() + first, count);
    if (Status status = decoder_->forward(chunk, stop_hook, this); !status.ok()) return status;
    if (recorder_)
      if (Status status = recorder_->add_positions(count); !status.ok()) return status;
    if (nll != nullptr)
      if (Status status = score_chunk(first, count, nll + (first - before)); !status.ok()) return status;
    first += count;
    if (first == end)
      if (Status status = project(count - logits_count, logits_count); !status.ok()) return status;
  }
  return {};
}

Status Session::score_chunk(uint32_t first, uint32_t count, double* nll) {
  // The very last token predicts nothing that is known.
  const uint32_t scored = std::min(count, static_cast<uint32_t>(history_.size()) - 1 - first);
  const kernels::Kernels& kernels = model_.runtime().kernels();
  const uint32_t n_vocab = model_.config()->n_vocab;
  for (uint32_t begin = 0; begin < scored; begin += max_logits_) {
    const uint32_t rows = std::min(max_logits_, scored - begin);
    if (Status status = decoder_->project(begin, rows, stop_hook, this); !status.ok()) return status;
    for (uint32_t row = 0; row < rows; ++row) {
      const float* logits = decoder_->logits(row);
      const uint32_t at = begin + row;
      nll[at] = kernels.log_sum_exp(logits, n_vocab) - logits[history_[first + at + 1]];
      if (std::isnan(nll[at])) return nan_at(first + at);
    }
  }
  return {};
}

Status Session::project(uint32_t first_row, uint32_t count) {
  if (Status status = decoder_->project(first_row, count, stop_hook, this); !status.ok()) return status;
  for (uint32_t row = 0; row < count; ++row)
    if (model_.runtime().kernels().argmax(decoder_->logits(row), model_.config()->n_vocab) < 0)
      return nan_at(history_.size() - count + row);
  logits_count_ = count;
  return {};
}

bool Session::stop_requested() {
  if (cancel_requested_.exchange(false, std::memory_order_relaxed)) stopping_ = true;
  if (!stopping_ && abort_.asks_to_stop()) stopping_ = true;
  return stopping_;
}

}  // namespace leanstream::runtime
