#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "model/tokenizer_vocabulary.h"

namespace leanstream::model {

// Finds tokens that are recognised in the text as it stands, before anything is split or merged: leftmost first, the
// longest where several begin together. Borrows the vocabulary. Immutable.
class SpecialTokens {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    Token id = -1;  // -1: nothing, and begin = end = the text's size
  };

  // User-defined tokens; with `controls` also control and unknown tokens.
  SpecialTokens(const Vocabulary& vocabulary, bool controls);

  // The first match that begins at `from` or later. Of control tokens, only those that have no byte in `plain`, whose
  // ranges ascend.
  Match find(std::string_view text, size_t from, std::span<const TextRange> plain) const;

 private:
  struct Range {
    size_t begin = 0, end = 0;
  };
  // `range`, less the tokens that differ from `byte` at `depth`.
  Range narrow(Range range, size_t depth, char byte) const;

  const Vocabulary& vocabulary_;
  std::vector<Token> sorted_;        // by their bytes
  std::array<Range, 256> by_first_;  // into sorted_, by first byte
};

}  // namespace leanstream::model
