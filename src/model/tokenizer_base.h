#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "model/tokenizer_special.h"
#include "model/tokenizer_vocabulary.h"

namespace leanstream::model {

// What both kinds of tokenizer share: special tokens are cut out of the text first, and the kind encodes what lies
// between. Immutable.
class VocabularyTokenizer : public Tokenizer {
 public:
  struct Traits {
    bool adds_bos = false;
    bool adds_eos = false;
    bool adds_space_prefix = false;     // a text, and what follows a special token, begins as if after a space
    bool strips_after_special = false;  // white space after a special token is dropped (Phi-3)
  };
  // Where the file says so it wins over `defaults`.
  static Result<Traits> read_traits(const gguf::Model& file, Traits defaults);

  VocabularyTokenizer(Vocabulary vocabulary, const Traits& traits);
  VocabularyTokenizer(const VocabularyTokenizer&) = delete;  // the special tokens refer to vocabulary_
  VocabularyTokenizer& operator=(const VocabularyTokenizer&) = delete;

  std::vector<Token> encode(std::string_view text, const Options& options) const override;
  std::string piece(Token id, bool special) const override;
  std::string decode(const Token* tokens, size_t count, bool special) const override;

  uint32_t size() const override { return vocabulary_.size(); }
  Token bos() const override { return vocabulary_.bos(); }
  Token eos() const override { return vocabulary_.eos(); }
  bool adds_bos() const override { return traits_.adds_bos; }
  bool ends_generation(Token id) const override { return vocabulary_.ends_generation(id); }

 protected:
  // Encodes the stretches of one text, in order; made anew for every call of encode(), so it may hold scratch memory.
  class TextEncoder {
   public:
    virtual ~TextEncoder() = default;
    // `text` is not empty and holds no special token.
    virtual void encode(std::string_view text, bool space_prefix, std::vector<Token>* out) = 0;
  };
  virtual std::unique_ptr<TextEncoder> make_encoder() const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  bool hidden(Token id) const;             // shown only when special tokens are asked for
  bool keeps_space_after(Token id) const;  // despite strips_after_special

  const Vocabulary vocabulary_;
  const Traits traits_;
  const SpecialTokens user_defined_;
  const SpecialTokens all_special_;
};

}  // namespace leanstream::model
