#include "model/tokenizer_bpe.h"

#include <unordered_map>

#include "model/utf8.h"

namespace leanstream::model {
namespace {

constexpr size_t kMaxWordBytes = size_t{1} << 30;  // offsets within a word are 32 bits wide

// GPT-2's byte alphabet: printable Latin-1 bytes stand for themselves, the others, in order, for U+0100 and on.
// Code point to byte, -1 for code points outside the alphabet (which ends at U+0143).
class ByteAlphabet {
 public:
  constexpr ByteAlphabet() {
    bytes_.fill(-1);
    size_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      bytes_[printable ? static_cast<size_t>(byte) : next++] = static_cast<int16_t>(byte);
    }
  }
  constexpr int byte_of(uint32_t code_point) const { return code_point < bytes_.size() ? bytes_[code_point] : -1; }

 private:
  std::array<int16_t, 0x144> bytes_{};
};
constexpr ByteAlphabet kAlphabet;

// The bytes that a text of the alphabet stands for. A character outside it stands for itself, and makes the result
// false.
bool append_decoded(std::string_view text, std::string* out) {
  bool all_known = true;
  while (!text.empty()) {
    const Utf8Head head = utf8_head(text);
    const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
    int byte = -1;
    if (head.kind == Utf8Head::kCharacter && head.size == 1) byte = kAlphabet.byte_of(at(0));
    if (head.kind == Utf8Head::kCharacter && head.size == 2)
      byte = kAlphabet.byte_of((at(0) & 0x1F) << 6 | (at(1) & 0x3F));
    if (byte >= 0) {
      out->push_back(static_cast<char>(byte));
    } else {
      *out += text.substr(0, head.size);
      all_known = false;
    }
    text.remove_prefix(head.size);
  }
  return all_known;
}

// Ids for texts: the vocabulary's tokens, and new ones for what it lacks.
class SymbolNames {
 public:
  explicit SymbolNames(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Token id(const std::string& bytes) {
    const Token token = vocabulary_.find(bytes);
    if (token >= 0) return token;
    const auto next = static_cast<Token>(vocabulary_.size() + extra_.size());
    return extra_.try_emplace(bytes, next).first->second;
  }

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, Token> extra_;
};

}  // namespace

Result<MergeTable> MergeTable::create(const Vocabulary& vocabulary, const gguf::StringList& merges) {
  MergeTable result;
  SymbolNames names(vocabulary);
  for (size_t byte = 0; byte < 256; ++byte) {
    result.byte_symbols_[byte] = names.id(std::string(1, static_cast<char>(byte)));
  }
  size_t slots = 16;
  while (slots < merges.size() + merges.size() / 2) slots *= 2;
  result.table_.resize(slots);

  std::string left, right;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view text = merges[rank];
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) {
      return malformed("reading the vocabulary: tokenizer.ggml.merges: entry " + std::to_string(rank) +
                       " is not two texts with a space between");
    }
    left.clear();
    right.clear();
    append_decoded(text.substr(0, space), &left);
    append_decoded(text.substr(space + 1), &right);
    const Token left_id = names.id(left), right_id = names.id(right);
    Slot& slot = result.table_[result.slot_of(left_id, right_id)];
    if (slot.left >= 0) continue;  // the first of equal entries counts
    slot = {left_id, right_id, names.id(left + right), static_cast<uint32_t>(rank)};
  }
  return result;
}

size_t MergeTable::slot_of(Token left, Token right) const {
  const uint64_t key = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  const size_t mask = table_.size() - 1;
  size_t slot = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask;  // Fibonacci hashing
  while (table_[slot].left >= 0 && (table_[slot].left != left || table_[slot].right != right)) slot = (slot + 1) & mask;
  return slot;
}

std::optional<Merge> MergeTable::find(Token left, Token right) const {
  const Slot& slot = table_[slot_of(left, right)];
  if (slot.left < 0) return std::nullopt;
  return Merge{slot.rank, slot.merged};
}

class BpeTokenizer::Encoder final : public TextEncoder {
 public:
  explicit Encoder(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer.vocabulary()) {}

  void encode(std::string_view text, bool space_prefix, std::vector<Token>* out) override {
    if (space_prefix) {
      prefixed_ = " ";
      prefixed_ += text;
      text = prefixed_;
    }
    size_t begin = 0;
    for (const size_t end : tokenizer_.splitter_.split(text)) {
      for (; begin < end; begin += std::min(end - begin, kMaxWordBytes)) {
        encode_word(text.substr(begin, std::min(end - begin, kMaxWordBytes)), out);
      }
    }
  }

 private:
  void encode_word(std::string_view word, std::vector<Token>* out) {
    if (tokenizer_.splitter_.prefers_whole_words()) {
      const Token whole = vocabulary_.find(word);
      if (whole >= 0) return out->push_back(whole);
    }
    merger_.clear();
    for (const char byte : word) merger_.append(1, tokenizer_.merges_.byte_symbol(static_cast<uint8_t>(byte)));
    merger_.run(
        [&](const Symbol& left, const Symbol& right) { return tokenizer_.merges_.find(left.token, right.token); });
    const auto n_tokens = static_cast<Token>(vocabulary_.size());
    merger_.for_each([&](const Symbol& symbol) {
      if (symbol.token < n_tokens) {
        out->push_back(symbol.token);
      } else {
        vocabulary_.spell(word.substr(symbol.begin, symbol.size), out);
      }
    });
  }

  const BpeTokenizer& tokenizer_;
  const Vocabulary& vocabulary_;
  std::string prefixed_;
  SymbolMerger merger_;
};

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::from_gguf(const gguf::Model& file) {
  // The name is checked first: it is what a user can look up.
  const Result<std::optional<std::string>> pre = file.find_string("tokenizer.ggml.pre");
  if (!pre.ok()) return pre.status();
  if (!pre->has_value()) {
    return unsupported(
        "choosing the pre-tokenizer: tokenizer.ggml.pre: missing; the file is from before 2024 and would be read "
        "wrongly");
  }
  Result<WordSplitter> splitter = WordSplitter::create(**pre);
  if (!splitter.ok()) return splitter.status();
  Result<Vocabulary> vocabulary = Vocabulary::from_gguf(file, append_decoded, false);
  if (!vocabulary.ok()) return vocabulary.status();
  const Result<const gguf::Array*> merges = file.find_array("tokenizer.ggml.merges", gguf::ValueType::kString);
  if (!merges.ok()) return merges.status();
  if (*merges == nullptr) return malformed("reading the vocabulary: tokenizer.ggml.merges: missing");
  Result<MergeTable> table = MergeTable::create(*vocabulary, (*merges)->strings);
  if (!table.ok()) return table.status();
  const Result<Traits> traits = read_traits(file, {.adds_bos = splitter->adds_bos()});
  if (!traits.ok()) return traits.status();
  return std::unique_ptr<Tokenizer>(
      std::make_unique<BpeTokenizer>(*std::move(vocabulary), *traits, *std::move(table), *std::move(splitter)));
}

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, const Traits& traits, MergeTable merges, WordSplitter splitter)
    : VocabularyTokenizer(std::move(vocabulary), traits), merges_(std::move(merges)), splitter_(std::move(splitter)) {}

std::unique_ptr<VocabularyTokenizer::TextEncoder> BpeTokenizer::make_encoder() const {
  return std::make_unique<Encoder>(*this);
}

}  // namespace leanstream::model
