// The generation loop of Session, and what it samples with.

#include <chrono>

#include "model/text_stream.h"
#include "runtime/meters.h"
#include "runtime/session.h"

namespace leanstream::runtime {
namespace {

// Passes text on to the caller as it becomes showable. Once the caller has said stop, it is told nothing more.
class TextOutput {
 public:
  explicit TextOutput(const GenerateParams& params) : params_(params), stream_(params.stop_strings) {}

  void push(std::string_view piece) { show(stream_.push(piece)); }
  void finish() { show(stream_.finish()); }

  bool met_stop_string() const { return stream_.stopped(); }
  bool refused() const { return refused_; }

 private:
  void show(const std::string& text) {
    if (params_.text == nullptr || refused_ || text.empty()) return;
    refused_ = params_.text(text.data(), text.size(), params_.text_user) == 0;
  }

  const GenerateParams& params_;
  model::TextStream stream_;
  bool refused_ = false;
};

}  // namespace

Status Session::set_sampling(const model::SamplingParams& params) {
  Result<model::Sampler> sampler = model::Sampler::create(params, model_.config()->n_vocab);
  if (!sampler.ok()) return sampler.status();
  sampler_ = *std::move(sampler);
  return {};
}

Result<Token> Session::sample(uint32_t index) {
  if (index >= logits_count_)
    return invalid_argument("cannot sample at index " + std::to_string(index) + ": there are logits for " +
                            std::to_string(logits_count_) + " positions");
  return sample_row(index);
}

Result<Token> Session::sample_row(uint32_t row) {
  const auto start = Clock::now();
  const size_t seen = history_.size() - logits_count_ + row + 1;
  Result<Token> token = sampler_.sample({decoder_->logits(row), model_.config()->n_vocab}, {history_.data(), seen});
  const auto now = Clock::now();
  statistics_.decode_ms += std::chrono::duration<double, std::milli>(now - start).count();
  if (token.ok() && first_token_due_since_) {
    statistics_.ttft_ms = std::chrono::duration<double, std::milli>(now - *first_token_due_since_).count();
    first_token_due_since_.reset();
  }
  return token;
}

Status Session::append_waiting_token() {
  const Token token = waiting_token_;
  const DecodeMeter meter(model_.stream(), statistics_);
  Status status = append({&token, 1}, 1, nullptr);
  if (status.ok())
    ++statistics_.decoded_tokens;
  else
    waiting_token_ = token;
  return status;
}

Result<GenerateResult> Session::generate(const GenerateParams& params) {
  if (logits_count_ == 0 && waiting_token_ < 0)
    return invalid_argument("cannot generate: there are no logits to sample from, prefill a prompt first");
  const model::Tokenizer& tokenizer = *model_.tokenizer();
  stopping_ = false;
  TextOutput output(params);
  GenerateResult result;

  const auto next_token = [&]() -> Result<std::optional<StopReason>> {
    if (params.max_tokens >= 0 && result.tokens >= static_cast<uint64_t>(params.max_tokens))
      return {StopReason::kLength};
    if (stop_requested()) return {StopReason::kCancelled};
    if (waiting_token_ >= 0) {
      if (position() == context()) return {StopReason::kLength};
      const Status status = append_waiting_token();
      if (status.code() == Code::kCancelled) return {StopReason::kCancelled};
      if (!status.ok()) return status;
    }
    const Result<Token> token = sample_row(logits_count_ - 1);
    if (!token.ok()) return token.status();
    const bool is_end = tokenizer.ends_generation(*token);
    if (is_end && !params.ignore_eos) return {StopReason::kEos};
    waiting_token_ = *token;
    ++result.tokens;
    ++statistics_.generated_tokens;
    // A model may have more logits than its vocabulary has entries.
    if (static_cast<uint32_t>(*token) < tokenizer.size()) output.push(tokenizer.piece(*token, false));
    if (output.met_stop_string()) return {StopReason::kString};
    if (output.refused()) return {StopReason::kCancelled};
    return {std::nullopt};
  };

  while (true) {
    const Result<std::optional<StopReason>> stop = next_token();
    if (stop.ok() && !*stop) continue;
    output.finish();
    if (!stop.ok()) return stop.status().with_context("cannot generate");
    result.reason = **stop;
    result.waiting_token = waiting_token_;
    return result;
  }
}

}  // namespace leanstream::runtime
