#include "model/tokenizer_base.h"

#include <algorithm>

namespace leanstream::model {
namespace {

bool is_ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The files do not carry the tokens' strip flags, so this goes by the name, as other runtimes do.
Result<bool> is_phi3(const gguf::Model& file) {
  const Result<std::optional<std::string>> name = file.find_string("general.name");
  if (!name.ok()) return name.status();
  std::string lower = name->value_or("");
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

}  // namespace

Result<VocabularyTokenizer::Traits> VocabularyTokenizer::read_traits(const gguf::Model& file, Traits traits) {
  const struct {
    const char* key;
    bool* value;
  } flags[] = {
      {"tokenizer.ggml.add_bos_token", &traits.adds_bos},
      {"tokenizer.ggml.add_eos_token", &traits.adds_eos},
      {"tokenizer.ggml.add_space_prefix", &traits.adds_space_prefix},
  };
  for (const auto& flag : flags) {
    const Result<std::optional<bool>> value = file.find_bool(flag.key);
    if (!value.ok()) return value.status();
    *flag.value = value->value_or(*flag.value);
  }
  const Result<bool> phi3 = is_phi3(file);
  if (!phi3.ok()) return phi3.status();
  traits.strips_after_special = *phi3;
  return traits;
}

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, const Traits& traits)
    : vocabulary_(std::move(vocabulary)),
      traits_{traits.adds_bos && vocabulary_.bos() >= 0, traits.adds_eos && vocabulary_.eos() >= 0,
              traits.adds_space_prefix, traits.strips_after_special},
      user_defined_(vocabulary_, false),
      all_special_(vocabulary_, true) {}

std::vector<Token> VocabularyTokenizer::encode(std::string_view text, const Options& options) const {
  std::vector<Token> tokens;
  tokens.reserve(text.size() / 4 + 2);
  const SpecialTokens& specials = options.special ? all_special_ : user_defined_;
  SpecialTokens::Match special = specials.find(text, 0, options.plain);
  // A chat template may spell the BOS itself: there is still only one.
  const bool spelled_bos = special.begin == 0 && special.id >= 0 && special.id == bos();
  if (options.bos && traits_.adds_bos && !spelled_bos) tokens.push_back(bos());

  const std::unique_ptr<TextEncoder> encoder = make_encoder();
  bool space_prefix = traits_.adds_space_prefix;
  for (size_t position = 0; position < text.size();) {
    if (special.begin > position) {
      encoder->encode(text.substr(position, special.begin - position), space_prefix, &tokens);
    }
    position = special.end;
    if (special.id < 0) break;
    tokens.push_back(special.id);
    space_prefix = traits_.adds_space_prefix;
    if (traits_.strips_after_special && !keeps_space_after(special.id)) {
      while (position < text.size() && is_ascii_space(text[position])) ++position;
    }
    special = specials.find(text, position, options.plain);
  }
  if (options.bos && traits_.adds_eos && (tokens.empty() || tokens.back() != eos())) tokens.push_back(eos());
  return tokens;
}

bool VocabularyTokenizer::keeps_space_after(Token id) const {
  const std::string_view text = vocabulary_.bytes(id);
  return text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
}

bool VocabularyTokenizer::hidden(Token id) const {
  const TokenType type = vocabulary_.type(id);
  return type == TokenType::kControl || type == TokenType::kUnknown || type == TokenType::kUnused;
}

std::string VocabularyTokenizer::piece(Token id, bool special) const {
  if (hidden(id) && !special) return {};
  return std::string(vocabulary_.bytes(id));
}

std::string VocabularyTokenizer::decode(const Token* tokens, size_t count, bool special) const {
  std::string text;
  bool first_word = traits_.adds_space_prefix;
  for (size_t i = 0; i < count; ++i) {
    const bool is_hidden = hidden(tokens[i]);
    if (is_hidden && !special) continue;
    std::string_view bytes = vocabulary_.bytes(tokens[i]);
    if (!is_hidden && first_word) {
      const bool prefixed = vocabulary_.type(tokens[i]) != TokenType::kUserDefined && !bytes.empty() && bytes[0] == ' ';
      bytes.remove_prefix(prefixed ? 1 : 0);
      first_word = false;
    }
    text += bytes;
  }
  return text;
}

}  // namespace leanstream::model
