#include "model/tokenizer_spm.h"

#include <bit>

#include "model/tokenizer_merge.h"
#include "model/utf8.h"

namespace leanstream::model {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
// Offsets within a word are 32 bits wide; no real word comes near.
constexpr size_t kMaxWordBytes = size_t{1} << 30;

void append_with_spaces(std::string_view text, std::string* out) {
  for (;;) {
    const size_t mark = text.find(kSpaceMark);
    *out += text.substr(0, mark);
    if (mark == std::string_view::npos) return;
    *out += ' ';
    text.remove_prefix(mark + kSpaceMark.size());
  }
}

// A plain space in the file's text is not the mark for one: no text, once normalised, holds it.
bool append_decoded(std::string_view text, std::string* out) {
  append_with_spaces(text, out);
  return text.find(' ') == std::string_view::npos;
}

// Orders like `score` from best to worst: the IEEE bits, made monotonic, upside down.
uint32_t merge_cost(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 and 0 are one score
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

}  // namespace

class SpmTokenizer::Encoder final : public TextEncoder {
 public:
  explicit Encoder(const SpmTokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer.vocabulary()) {}

  void encode(std::string_view raw, bool space_prefix, std::vector<Token>* out) override {
    text_.assign(space_prefix ? 1 : 0, ' ');
    append_with_spaces(raw, &text_);
    for (std::string_view rest = text_; !rest.empty();) {
      const size_t size = word_size(rest);
      encode_word(rest.substr(0, size), out);
      rest.remove_prefix(size);
    }
  }

 private:
  size_t word_size(std::string_view text) const {
    for (size_t i = 1; i < text.size(); ++i) {
      const bool cut =
          text[i] == ' ' && text[i - 1] != ' ' && !tokenizer_.joins_space_[static_cast<uint8_t>(text[i - 1])];
      if (cut || i == kMaxWordBytes) return i;
    }
    return text.size();
  }

  void encode_word(std::string_view word, std::vector<Token>* out) {
    merger_.clear();
    for (size_t i = 0; i < word.size();) {
      const Utf8Head head = utf8_head(word.substr(i));
      const uint32_t size = head.kind == Utf8Head::kCharacter ? head.size : 1;
      merger_.append(size, vocabulary_.find(word.substr(i, size)));
      i += size;
    }
    merger_.run([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      const Token token = vocabulary_.find(word.substr(left.begin, left.size + right.size));
      if (token < 0) return std::nullopt;
      return Merge{merge_cost(vocabulary_.score(token)), token};
    });
    merger_.for_each([&](const Symbol& symbol) {
      if (symbol.token >= 0) {
        out->push_back(symbol.token);
      } else {
        vocabulary_.spell(word.substr(symbol.begin, symbol.size), out);
      }
    });
  }

  const SpmTokenizer& tokenizer_;
  const Vocabulary& vocabulary_;
  std::string text_;
  SymbolMerger merger_;
};

Result<std::unique_ptr<Tokenizer>> SpmTokenizer::from_gguf(const gguf::Model& file) {
  Result<Vocabulary> vocabulary = Vocabulary::from_gguf(file, append_decoded, true);
  if (!vocabulary.ok()) return vocabulary.status();
  const Result<Traits> traits = read_traits(file, {.adds_bos = true, .adds_eos = false, .adds_space_prefix = true});
  if (!traits.ok()) return traits.status();
  return std::unique_ptr<Tokenizer>(std::make_unique<SpmTokenizer>(*std::move(vocabulary), *traits));
}

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary_value, const Traits& traits)
    : VocabularyTokenizer(std::move(vocabulary_value), traits) {
  for (Token id = 0; id < static_cast<Token>(size()); ++id) {
    const std::string_view bytes = vocabulary().bytes(id);
    for (size_t i = 1; i < bytes.size(); ++i) {
      if (bytes[i] == ' ' && bytes[i - 1] != ' ') joins_space_.set(static_cast<uint8_t>(bytes[i - 1]));
    }
  }
}

std::unique_ptr<VocabularyTokenizer::TextEncoder> SpmTokenizer::make_encoder() const {
  return std::make_unique<Encoder>(*this);
}

}  // namespace leanstream::model
