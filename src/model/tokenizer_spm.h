#pragma once

#include <bitset>
#include <memory>

#include "model/tokenizer_base.h"

namespace leanstream::model {

// SentencePiece's BPE kind: the neighbours whose union has the best score merge first; what is no token is spelled in
// byte tokens. Text and tokens are kept with plain spaces in place of the file's U+2581 (and a U+2581 in a text is a
// space, as it is to SentencePiece). Invalid UTF-8 becomes byte tokens, byte by byte.
class SpmTokenizer final : public VocabularyTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const gguf::Model& file);

  SpmTokenizer(Vocabulary vocabulary, const Traits& traits);

 private:
  class Encoder;
  std::unique_ptr<TextEncoder> make_encoder() const override;

  // Bytes that some token has before a space inside it. At any other byte before a space no merge can cross, so the
  // text is merged word by word.
  std::bitset<256> joins_space_;
};

}  // namespace leanstream::model
