#include "model/tokenizer.h"

#include "model/tokenizer_bpe.h"
#include "model/tokenizer_spm.h"

namespace leanstream::model {

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const gguf::Model& file) {
  const Result<std::optional<std::string>> kind = file.find_string("tokenizer.ggml.model");
  if (!kind.ok()) return kind.status();
  if (!kind->has_value()) return malformed("reading the vocabulary: tokenizer.ggml.model: missing");
  if (**kind == "llama") return SpmTokenizer::from_gguf(file);
  if (**kind == "gpt2") return BpeTokenizer::from_gguf(file);
  return unsupported("reading the vocabulary: tokenizer.ggml.model = \"" + **kind +
                     "\": only \"llama\" (SentencePiece) and \"gpt2\" (byte-level BPE) are known");
}

}  // namespace leanstream::model
