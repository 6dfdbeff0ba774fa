#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "model/tokenizer_base.h"
#include "model/tokenizer_merge.h"
#include "model/tokenizer_split.h"

namespace leanstream::model {

// The merges of a byte-level BPE vocabulary: two symbols, by id, to the symbol they become and the merge's rank.
// Symbols are tokens, or texts that only occur inside merges: those have ids from the vocabulary's size on. Immutable.
class MergeTable {
 public:
  // `merges` as in tokenizer.ggml.merges: two texts of the byte alphabet with a space between.
  // Errors: kMalformed naming the entry.
  static Result<MergeTable> create(const Vocabulary& vocabulary, const gguf::StringList& merges);

  // cost is the rank.
  std::optional<Merge> find(Token left, Token right) const;
  Token byte_symbol(uint8_t byte) const { return byte_symbols_[byte]; }

 private:
  struct Slot {
    Token left = -1, right = -1;  // -1 = free
    Token merged = -1;
    uint32_t rank = 0;
  };
  size_t slot_of(Token left, Token right) const;  // where the pair is or would go

  std::vector<Slot> table_;  // open addressing; size is a power of two
  std::array<Token, 256> byte_symbols_;
};

// Byte-level BPE: text is cut into words, each byte is a symbol, and the neighbours that stand first in the file's list
// of merges merge first. Tokens are kept as the bytes they stand for. Invalid UTF-8 needs no rule: its bytes are
// symbols like all others, in words of their own.
class BpeTokenizer final : public VocabularyTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const gguf::Model& file);

  BpeTokenizer(Vocabulary vocabulary, const Traits& traits, MergeTable merges, WordSplitter splitter);

 private:
  class Encoder;
  std::unique_ptr<TextEncoder> make_encoder() const override;

  const MergeTable merges_;
  const WordSplitter splitter_;
};

}  // namespace leanstream::model
