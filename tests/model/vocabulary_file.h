#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gguf/reader.h"
#include "model/tokenizer.h"

namespace leanstream::test {

// The numbers of tokenizer.ggml.token_type.
enum : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// A vocabulary-only GGUF file made up for a test, to be bent before it is written.
class VocabularyFile {
 public:
  // SentencePiece-type: <unk> <s> </s> (ids 0 to 2), <0x00> to <0xFF> (3 to 258), then what a test adds.
  static VocabularyFile spm();
  // Byte-level BPE: one token a byte (the id is the byte), then what a test adds.
  static VocabularyFile bpe(const std::string& pre);

  // Returns the new token's id. `text` as in the file: U+2581 or the byte alphabet for a space.
  model::Token add(const std::string& text, float score = 0.0f, int32_t type = kNormal);
  // "left right"; the union is added as a token.
  model::Token add_merge(const std::string& left, const std::string& right);

  VocabularyFile& set(const std::string& key, gguf::Value value);
  VocabularyFile& set_id(const std::string& name, uint32_t id);  // "eos" for tokenizer.ggml.eos_token_id
  VocabularyFile& set_flag(const std::string& name, bool value);
  VocabularyFile& set_text(const std::string& key, const std::string& value);
  VocabularyFile& drop(const std::string& key) { return dropped_.push_back(key), *this; }

  // Written to a temporary folder and parsed. A failure to write or parse it aborts: it is the test's own.
  gguf::Model open() const;
  Result<std::unique_ptr<model::Tokenizer>> tokenizer() const;

  std::vector<std::string> tokens;
  std::vector<float> scores;  // empty: not written
  std::vector<int32_t> types;
  std::vector<std::string> merges;

 private:
  std::vector<std::pair<std::string, gguf::Value>> values_;
  std::vector<std::string> dropped_;
};

// The letter of GPT-2's byte alphabet that stands for `byte`.
std::string byte_letter(uint8_t byte);

}  // namespace leanstream::test
