#include "sampling_options.h"

#include <limits>
#include <random>

#include "handles.h"
#include "log.h"
#include "text.h"

namespace leanstream::cli {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return device();  // 32 bits: short enough to type again
}

}  // namespace

void add_generation_options(Flags& flags, GenerationOptions& options) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();
  flags.group("Generation");
  flags.number("-n,--predict,--n-predict", "N", options.max_tokens, -1, kMost,
               "Tokens to generate at most; -1 = until the model ends\nor the context is full (default -1)");
  flags.texts("-r,--reverse-prompt", "TEXT", options.stop, "Stop at this text, which is not shown; may be given again");
  flags.flag("--ignore-eos", options.ignore_eos, "Go on past the model's end tokens");
  flags.number("-s,--seed", "N", options.seed, -1, kMost,
               "The same seed gives the same text; -1 = random (default -1)");
  flags.number("--temp,--temperature", "X", options.temperature, 0, 1000,
               "0 = always the likeliest token (default 0.8)");
  flags.number("--top-k", "K", options.top_k, -1, kMost32, "Among the K likeliest; 0 = all (default 40)");
  flags.number("--top-p", "X", options.top_p, 0, 1, "Among the likeliest that sum up to X; 1 = all (default 0.95)");
  flags.number("--min-p", "X", options.min_p, 0, 1,
               "At least X times as likely as the likeliest; 0 = all\n(default 0.05)");
  flags.number("--repeat-penalty", "X", options.repeat_penalty, 1e-3, 1000,
               "For tokens that came before; 1 = off (default 1)");
  flags.number("--repeat-last-n", "N", options.repeat_last_n, -1, kMost32,
               "How many tokens back that looks; 0 = off, -1 = all\n(default 64)");
}

Status set_sampling(leanstream_session& session, const GenerationOptions& options) {
  auto params = with_size<leanstream_sampling_params>();
  leanstream_sampling_params_init(&params);
  params.temperature = static_cast<float>(options.temperature);
  params.top_k = options.top_k > 0 ? static_cast<uint32_t>(options.top_k) : 0;
  params.top_p = static_cast<float>(options.top_p);
  params.min_p = static_cast<float>(options.min_p);
  params.repeat_penalty = static_cast<float>(options.repeat_penalty);
  params.repeat_last_n = static_cast<int32_t>(options.repeat_last_n);
  params.seed = options.seed >= 0 ? static_cast<uint64_t>(options.seed) : random_seed();
  if (options.seed < 0 && options.temperature > 0)
    log_info(formatted("seed %llu (random; -s sets it)", static_cast<unsigned long long>(params.seed)));
  return checked([&](leanstream_error* e) { return leanstream_session_set_sampling(&session, &params, e); });
}

StopStrings::StopStrings(const std::vector<std::string>& typed, bool escapes) {
  for (const std::string& text : typed) strings_.push_back(escapes ? unescaped(text) : text);
  for (const std::string& text : strings_) pointers_.push_back(text.c_str());
}

void StopStrings::apply(leanstream_generate_params& params) const {
  params.stop = pointers_.data();
  params.n_stop = pointers_.size();
}

}  // namespace leanstream::cli
