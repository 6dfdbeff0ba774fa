#include "model/tokenizer_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace leanstream::model {
namespace {

using gguf::Array;
using gguf::ValueType;

// Token texts that end a turn. Files often give them as user-defined or even normal tokens; nobody means them as text.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",      "<|eom_id|>",    "<|im_end|>",
    "<|end|>",         "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<EOT>",         "<｜end▁of▁sentence｜>",
};
// These end a turn only as control tokens: elsewhere they are HTML or plain text.
constexpr std::string_view kEndTextsOfControls[] = {"</s>", "<eos>"};

Result<const Array*> required_array(const gguf::Model& file, std::string_view key, ValueType element_type) {
  Result<const Array*> array = file.find_array(key, element_type);
  if (array.ok() && *array == nullptr) return malformed("reading the vocabulary: " + std::string(key) + ": missing");
  return array;
}

Status unequal(std::string_view key, size_t count, size_t tokens) {
  return malformed("reading the vocabulary: " + std::string(key) + ": has " + std::to_string(count) + " elements for " +
                   std::to_string(tokens) + " tokens");
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// "<0x0A>" -> 10; -1 for anything else.
int parse_byte_token(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Made from text by merging; all others are recognised as they stand, or are bytes.
bool is_ordinary(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUndefined || type == TokenType::kUnused;
}

}  // namespace

Result<Vocabulary> Vocabulary::from_gguf(const gguf::Model& file, Decode decode, bool needs_scores) {
  Vocabulary vocabulary;
  std::vector<bool> findable;
  if (Status status = vocabulary.read_tokens(file, decode, &findable); !status.ok()) return status;
  if (needs_scores) {
    if (Status status = vocabulary.read_scores(file, vocabulary.size()); !status.ok()) return status;
  }
  if (Status status = vocabulary.read_special_ids(file); !status.ok()) return status;
  vocabulary.mark_end_tokens(&findable);
  vocabulary.build_table(findable);
  vocabulary.choose_spelling();
  return vocabulary;
}

Status Vocabulary::read_scores(const gguf::Model& file, size_t n_tokens) {
  const Result<const Array*> scores = required_array(file, "tokenizer.ggml.scores", ValueType::kFloat32);
  if (!scores.ok()) return scores.status();
  const std::vector<double>& values = (*scores)->floats;
  if (values.size() != n_tokens) return unequal("tokenizer.ggml.scores", values.size(), n_tokens);
  const auto nan = std::find_if(values.begin(), values.end(), [](double s) { return std::isnan(s); });
  if (nan != values.end()) {
    return malformed("reading the vocabulary: tokenizer.ggml.scores: element " + std::to_string(nan - values.begin()) +
                     " is not a number");
  }
  scores_.assign(values.begin(), values.end());
  return {};
}

Status Vocabulary::read_tokens(const gguf::Model& file, Decode decode, std::vector<bool>* findable) {
  const Result<const Array*> tokens = required_array(file, "tokenizer.ggml.tokens", ValueType::kString);
  if (!tokens.ok()) return tokens.status();
  const Result<const Array*> types = required_array(file, "tokenizer.ggml.token_type", ValueType::kInt32);
  if (!types.ok()) return types.status();
  const gguf::StringList& texts = (*tokens)->strings;
  if (texts.empty() || texts.size() > static_cast<size_t>(std::numeric_limits<Token>::max() / 4)) {
    return malformed("reading the vocabulary: tokenizer.ggml.tokens: has " + std::to_string(texts.size()) + " tokens");
  }
  if ((*types)->signeds.size() != texts.size()) {
    return unequal("tokenizer.ggml.token_type", (*types)->signeds.size(), texts.size());
  }

  byte_tokens_.fill(-1);
  types_.reserve(texts.size());
  begins_.reserve(texts.size() + 1);
  begins_.push_back(0);
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t type = (*types)->signeds[i];
    if (type < 0 || type > static_cast<int64_t>(TokenType::kByte)) {
      return malformed("reading the vocabulary: tokenizer.ggml.token_type: token " + std::to_string(i) +
                       " has the unknown type " + std::to_string(type));
    }
    types_.push_back(static_cast<TokenType>(type));
    if (types_[i] == TokenType::kByte) {
      const int byte = parse_byte_token(texts[i]);
      if (byte < 0) {
        return malformed("reading the vocabulary: tokenizer.ggml.tokens: byte token " + std::to_string(i) +
                         " is not of the form <0xHH>");
      }
      blob_.push_back(static_cast<char>(byte));
      if (byte_tokens_[static_cast<size_t>(byte)] < 0) byte_tokens_[static_cast<size_t>(byte)] = static_cast<Token>(i);
    }
    const bool ordinary = is_ordinary(types_[i]);
    if (!ordinary && types_[i] != TokenType::kByte) blob_ += texts[i];
    findable->push_back(ordinary && decode(texts[i], &blob_));
    if (blob_.size() > std::numeric_limits<uint32_t>::max()) {
      return malformed("reading the vocabulary: tokenizer.ggml.tokens: more than 4 GiB of text");
    }
    begins_.push_back(static_cast<uint32_t>(blob_.size()));
  }
  return {};
}

Status Vocabulary::read_special_ids(const gguf::Model& file) {
  Token eot = -1, eom = -1;
  const struct {
    const char* key;
    Token* id;
  } specials[] = {
      {"tokenizer.ggml.bos_token_id", &bos_},         {"tokenizer.ggml.eos_token_id", &eos_},
      {"tokenizer.ggml.unknown_token_id", &unknown_}, {"tokenizer.ggml.eot_token_id", &eot},
      {"tokenizer.ggml.eom_token_id", &eom},
  };
  for (const auto& special : specials) {
    const Result<std::optional<uint64_t>> id = file.find_unsigned(special.key);
    if (!id.ok()) return id.status();
    // Converters write "none" as -1, and that into an unsigned field.
    if (!id->has_value() || **id == std::numeric_limits<uint32_t>::max()) continue;
    if (**id >= size()) {
      return malformed(std::string("reading the vocabulary: ") + special.key + ": " + std::to_string(**id) +
                       " is not one of the " + std::to_string(size()) + " tokens");
    }
    *special.id = static_cast<Token>(**id);
  }
  for (const Token id : {eos_, eot, eom}) {
    if (id >= 0) end_tokens_.push_back(id);
  }
  return {};
}

void Vocabulary::mark_end_tokens(std::vector<bool>* findable) {
  const auto among = [](const auto& texts, std::string_view text) {
    return std::find(std::begin(texts), std::end(texts), text) != std::end(texts);
  };
  for (Token id = 0; id < static_cast<Token>(size()); ++id) {
    const std::string_view text = bytes(id);
    if (text.empty() || (text[0] != '<')) continue;
    TokenType& type = types_[static_cast<size_t>(id)];
    if (among(kEndTexts, text)) {
      type = TokenType::kControl;
      (*findable)[static_cast<size_t>(id)] = false;
    } else if (type != TokenType::kControl || !among(kEndTextsOfControls, text)) {
      continue;
    }
    end_tokens_.push_back(id);
  }
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
}

void Vocabulary::build_table(const std::vector<bool>& findable) {
  size_t slots = 16;
  while (slots < size() + size() / 2) slots *= 2;
  table_.assign(slots, -1);
  for (Token id = 0; id < static_cast<Token>(size()); ++id) {
    const std::string_view text = bytes(id);
    if (!findable[static_cast<size_t>(id)] || text.empty()) continue;
    longest_ = std::max(longest_, text.size());
    size_t slot = std::hash<std::string_view>{}(text) & (slots - 1);
    while (table_[slot] >= 0 && bytes(table_[slot]) != text) slot = (slot + 1) & (slots - 1);
    if (table_[slot] < 0) table_[slot] = id;
  }
}

Token Vocabulary::find(std::string_view text) const {
  if (text.size() > longest_) return -1;
  size_t slot = std::hash<std::string_view>{}(text) & (table_.size() - 1);
  while (table_[slot] >= 0 && bytes(table_[slot]) != text) slot = (slot + 1) & (table_.size() - 1);
  return table_[slot];
}

void Vocabulary::choose_spelling() {
  for (size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    if (byte_tokens_[byte] < 0) byte_tokens_[byte] = find({&text, 1});
  }
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
  const Token whole = find(kReplacement);
  if (whole >= 0) {
    replacement_ = {whole};
    return;
  }
  for (const char byte : kReplacement) replacement_.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
  if (*std::min_element(replacement_.begin(), replacement_.end()) >= 0) return;
  replacement_.assign(unknown_ >= 0 ? 1 : 0, unknown_);
}

void Vocabulary::spell(std::string_view text, std::vector<Token>* out) const {
  for (const char byte : text) {
    const Token token = byte_tokens_[static_cast<uint8_t>(byte)];
    if (token >= 0) {
      out->push_back(token);
    } else {
      out->insert(out->end(), replacement_.begin(), replacement_.end());
    }
  }
}

bool Vocabulary::ends_generation(Token id) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), id);
}

}  // namespace leanstream::model
