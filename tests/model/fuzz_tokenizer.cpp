// libFuzzer target: any bytes, encoded by both kinds of tokenizer, come back as they were.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/model/vocabulary_file.h"

namespace {

using leanstream::model::Tokenizer;
using leanstream::test::VocabularyFile;

std::unique_ptr<Tokenizer> make_spm() {
  VocabularyFile file = VocabularyFile::spm();
  for (const char* piece : {"▁", "▁▁", "a", "b", "c", "ab", "bc", "abc", "▁a", "b▁c", "é", "世", "<", "s", ">", "<s"}) {
    file.add(piece, static_cast<float>(file.tokens.size() % 5));
  }
  return *file.tokenizer();
}

std::unique_ptr<Tokenizer> make_bpe(const char* pre) {
  VocabularyFile file = VocabularyFile::bpe(pre);
  file.add_merge("a", "b"), file.add_merge("Ġ", "a"), file.add_merge("Ġ", "Ġ"), file.add_merge("Ã", "©");
  file.add_merge("ab", "ab");
  file.merges.push_back("b c");  // to a symbol that is no token
  file.add("<|im_start|>", 0, leanstream::test::kControl);
  file.add("\n\n", 0, leanstream::test::kUserDefined);
  return *file.tokenizer();
}

void check(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const auto tokens = tokenizer.encode(text, {.bos = false, .special = special});
    for (const auto token : tokens) {
      if (token < 0 || static_cast<uint32_t>(token) >= tokenizer.size()) std::abort();
    }
    const std::string decoded = tokenizer.decode(tokens.data(), tokens.size(), special);
    // U+2581 is a space to SentencePiece, and after a special token a space is put in.
    const bool exact = tokenizer.adds_bos() ? !special && text.find("\xE2\x96\x81") == text.npos : true;
    if (exact && decoded != text) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<Tokenizer> tokenizers[] = {
      make_spm(),          make_bpe("qwen2"), make_bpe("gpt-2"), make_bpe("deepseek-llm"), make_bpe("deepseek-coder"),
      make_bpe("default"), make_bpe("tekken")};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& tokenizer : tokenizers) check(*tokenizer, text);
  return 0;
}
