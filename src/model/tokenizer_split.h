#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace leanstream::model {

// Cuts text into the words within which byte-level BPE merges, by the regular expressions that tokenizer.ggml.pre
// names. Immutable, thread-safe.
class WordSplitter {
 public:
  // Errors: kUnsupported for a name we do not know.
  static Result<WordSplitter> create(std::string_view pre);

  WordSplitter(WordSplitter&&) noexcept;
  ~WordSplitter();

  // The offset behind each word, ascending; the last is text.size(). Nothing is lost: what no expression matches is a
  // word too, and so is each run of bytes that is not UTF-8.
  std::vector<size_t> split(std::string_view text) const;

  bool prefers_whole_words() const { return prefers_whole_words_; }  // a word that is a token is not merged
  bool adds_bos() const { return adds_bos_; }                        // where the file does not say

 private:
  class Pattern;
  WordSplitter();

  // Applied one after the other, each to the pieces that those before it left.
  std::vector<Pattern> patterns_;
  bool prefers_whole_words_ = false;
  bool adds_bos_ = false;
};

}  // namespace leanstream::model
