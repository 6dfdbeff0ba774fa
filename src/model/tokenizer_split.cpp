#include "model/tokenizer_split.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "model/utf8.h"

namespace leanstream::model {
namespace {

// The expressions are those of the models' tokenizer.json files. In these, \s stands only inside brackets: it is
// replaced by Unicode's White_Space, which PCRE2's own \s exceeds by U+180E.
constexpr std::string_view kWhiteSpace = R"(\t-\r\x{85}\p{Z})";

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|[\s]+(?![^\s])|[\s]+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)";
constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)";
constexpr const char* kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)"
    R"(|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)";
// The cased letters of Unicode that DeepSeek's file lists one range after the other.
constexpr const char* kDeepseekWord =
    R"([\s]?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* kDeepseekMarks =
    R"([\s]?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kDeepseekCjk = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// `\s+$`, which the look-behind keeps from being tried again at every space of a long run.
constexpr const char* kTrailingSpace = R"((?<![\s])[\s]++$)";

struct Rule {
  std::array<const char*, 6> patterns;  // the first nullptr ends them
  bool prefers_whole_words = false;
  bool adds_bos = false;
};

constexpr Rule kRuleGpt2 = {{kGpt2}};
constexpr Rule kRuleDigitsThenGpt2 = {{R"(\p{N})", kGpt2}};
constexpr Rule kRuleLlama3 = {{kLlama3}, true, true};
constexpr Rule kRuleLlama3Merging = {{kLlama3}};
constexpr Rule kRuleQwen2 = {{kQwen2}};
constexpr Rule kRuleTekken = {{kTekken}, true, true};
constexpr Rule kRuleSeedCoder = {{kSeedCoder}};
constexpr Rule kRuleDeepseekLlm = {
    {R"([\r\n])", kDeepseekWord, kDeepseekMarks, kTrailingSpace, kDeepseekCjk, R"(\p{N}+)"}};
constexpr Rule kRuleDeepseekCoder = {{R"([\r\n])", R"([\s]?\p{L}+)", R"([\s]?\p{P}+)", kDeepseekCjk, R"(\p{N})"}};
constexpr Rule kRuleDefault = {{R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"}};

constexpr struct {
  std::string_view name;
  const Rule* rule;
} kRules[] = {
    {"default", &kRuleDefault},
    {"gpt-2", &kRuleGpt2},
    {"phi-2", &kRuleGpt2},
    {"olmo", &kRuleGpt2},
    {"mpt", &kRuleGpt2},
    {"gigachat", &kRuleGpt2},
    {"a.x-4.0", &kRuleGpt2},
    {"mellum", &kRuleGpt2},
    {"exaone4", &kRuleGpt2},
    {"trillion", &kRuleGpt2},
    {"starcoder", &kRuleDigitsThenGpt2},
    {"refact", &kRuleDigitsThenGpt2},
    {"command-r", &kRuleDigitsThenGpt2},
    {"smollm", &kRuleDigitsThenGpt2},
    {"codeshell", &kRuleDigitsThenGpt2},
    {"minerva-7b", &kRuleDigitsThenGpt2},
    {"llama3", &kRuleLlama3},
    {"llama-v3", &kRuleLlama3},
    {"llama-bpe", &kRuleLlama3},
    {"falcon3", &kRuleLlama3},
    {"pixtral", &kRuleLlama3},
    {"midm-2.0", &kRuleLlama3},
    {"dbrx", &kRuleLlama3Merging},
    {"smaug-bpe", &kRuleLlama3Merging},
    {"qwen2", &kRuleQwen2},
    {"deepseek-r1-qwen", &kRuleQwen2},
    {"megrez", &kRuleQwen2},
    {"kormo", &kRuleQwen2},
    {"stablelm2", &kRuleQwen2},
    {"tekken", &kRuleTekken},
    {"seed-coder", &kRuleSeedCoder},
    {"deepseek-llm", &kRuleDeepseekLlm},
    {"deepseek-coder", &kRuleDeepseekCoder},
};

std::string with_white_space(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.substr(i, 2) == R"(\s)") {
      out += kWhiteSpace;
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// What matching needs for one call of split().
struct MatchState {
  std::unique_ptr<pcre2_match_data, FreeMatch> match{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, FreeContext> context{pcre2_match_context_create(nullptr)};
};

}  // namespace

class WordSplitter::Pattern {
 public:
  static Result<Pattern> compile(std::string_view pattern) {
    const std::string text = with_white_space(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, nullptr);
    if (code == nullptr) {
      return internal_error("compiling a pre-tokenizer pattern: " + text + ": PCRE2 error " + std::to_string(error) +
                            " at " + std::to_string(offset));
    }
    // Where the machine forbids run-time code, PCRE2 interprets: slower, with the same result.
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    Pattern compiled;
    compiled.code_.reset(code);
    return compiled;
  }

  // Appends the ends of the pieces of text[begin, end), which is valid UTF-8.
  void split(std::string_view text, size_t begin, size_t end, MatchState* state, std::vector<size_t>* ends) const {
    const std::string_view subject = text.substr(begin, end - begin);
    size_t done = 0;
    while (done < subject.size()) {
      size_t match_begin = 0, match_end = 0;
      if (!find(subject, done, state, &match_begin, &match_end)) break;
      if (match_begin > done) ends->push_back(begin + match_begin);
      ends->push_back(begin + match_end);
      done = match_end;
    }
    if (done < subject.size()) ends->push_back(end);
  }

 private:
  // A match that fails for want of memory counts as none: the rest is one word, and encoding goes on.
  bool find(std::string_view subject, size_t from, MatchState* state, size_t* begin, size_t* end) const {
    const auto* bytes = reinterpret_cast<PCRE2_SPTR>(subject.data());
    int found = pcre2_match(code_.get(), bytes, subject.size(), from, PCRE2_NO_UTF_CHECK, state->match.get(),
                            state->context.get());
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter backtracks on the heap
      found = pcre2_match(code_.get(), bytes, subject.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          state->match.get(), state->context.get());
    }
    if (found < 0) return false;
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state->match.get());
    *begin = range[0];
    *end = range[1];
    return *end > *begin;  // none of the patterns matches nothing
  }

  std::unique_ptr<pcre2_code, FreeCode> code_;
};

WordSplitter::WordSplitter() = default;
WordSplitter::WordSplitter(WordSplitter&&) noexcept = default;
WordSplitter::~WordSplitter() = default;

Result<WordSplitter> WordSplitter::create(std::string_view pre) {
  const auto* entry = std::find_if(std::begin(kRules), std::end(kRules), [&](const auto& r) { return r.name == pre; });
  if (entry == std::end(kRules)) {
    return unsupported("choosing the pre-tokenizer: tokenizer.ggml.pre = \"" + std::string(pre) +
                       "\": not one this version knows");
  }
  WordSplitter splitter;
  splitter.prefers_whole_words_ = entry->rule->prefers_whole_words;
  splitter.adds_bos_ = entry->rule->adds_bos;
  for (const char* text : entry->rule->patterns) {
    if (text == nullptr) break;
    Result<Pattern> pattern = Pattern::compile(text);
    if (!pattern.ok()) return pattern.status();
    splitter.patterns_.push_back(*std::move(pattern));
  }
  return splitter;
}

std::vector<size_t> WordSplitter::split(std::string_view text) const {
  MatchState state;
  if (state.context != nullptr) {
    pcre2_set_match_limit(state.context.get(), std::numeric_limits<uint32_t>::max());
    pcre2_set_depth_limit(state.context.get(), std::numeric_limits<uint32_t>::max());
  }
  // Stretches of valid and of invalid bytes take turns, the first is valid (and may be empty).
  std::vector<size_t> stretches;
  bool valid = true;
  for (size_t i = 0; i < text.size();) {
    const Utf8Head head = utf8_head(text.substr(i));
    if ((head.kind == Utf8Head::kCharacter) != valid) {
      stretches.push_back(i);
      valid = !valid;
    }
    i += head.kind == Utf8Head::kCharacter ? head.size : 1;
  }
  stretches.push_back(text.size());

  std::vector<size_t> ends, pieces, finer;
  size_t begin = 0;
  for (size_t stretch = 0; stretch < stretches.size(); ++stretch) {
    const size_t end = stretches[stretch];
    if (end == begin) continue;
    pieces.assign(1, end);
    if (stretch % 2 == 0 && state.match != nullptr && state.context != nullptr) {
      for (const Pattern& pattern : patterns_) {
        finer.clear();
        size_t piece_begin = begin;
        for (const size_t piece_end : pieces) {
          pattern.split(text, piece_begin, piece_end, &state, &finer);
          piece_begin = piece_end;
        }
        pieces.swap(finer);
      }
    }
    ends.insert(ends.end(), pieces.begin(), pieces.end());
    begin = end;
  }
  return ends;
}

}  // namespace leanstream::model
