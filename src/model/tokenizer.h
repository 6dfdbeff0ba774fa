#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/reader.h"

namespace leanstream::model {

using Token = int32_t;

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const TextRange&) const = default;
};

// Text to ids and back, by the vocabulary of a GGUF file: SentencePiece-type ("llama") or byte-level BPE ("gpt2", with
// the pre-tokenizer that tokenizer.ggml.pre names). Immutable, thread-safe.
class Tokenizer {
 public:
  // Errors: kUnsupported for another tokenizer.ggml.model or an unknown tokenizer.ggml.pre, by name; kMalformed for
  // missing or mistyped arrays, or arrays of unequal length.
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const gguf::Model& file);

  virtual ~Tokenizer() = default;

  struct Options {
    bool bos = false;                       // begin with BOS (and end with EOS) where the model adds one
    bool special = false;                   // text that spells a control token becomes that token
    std::span<const TextRange> plain = {};  // but not with a byte in one of these; ascending, apart
  };
  virtual std::vector<Token> encode(std::string_view text, const Options& options) const = 0;

  // The bytes of one token: possibly part of a character; "" for a control token unless `special`. id is in range.
  virtual std::string piece(Token id, bool special) const = 0;

  // The text of a sequence: pieces joined, less the space prefix that encoding added to the text's first word.
  virtual std::string decode(const Token* tokens, size_t count, bool special) const = 0;

  virtual uint32_t size() const = 0;
  virtual Token bos() const = 0;  // -1 when there is none
  virtual Token eos() const = 0;
  virtual bool adds_bos() const = 0;
  virtual bool ends_generation(Token id) const = 0;  // EOS, EOT and other end-of-turn tokens
};

}  // namespace leanstream::model
