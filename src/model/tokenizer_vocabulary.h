#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/reader.h"
#include "model/tokenizer.h"

namespace leanstream::model {

// The numbers of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,  // text that is one token wherever it stands
  kUnused = 5,
  kByte = 6,
};

// The tokens of a file: the bytes each stands for, its type and score, and the way back from bytes. One string holds
// all bytes and a hash table of ids finds them: about 20 bytes a token besides its text. Immutable.
class Vocabulary {
 public:
  // Appends the bytes that a normal token's text stands for. False where no text can become that token, because its own
  // is not in the form of the vocabulary's kind.
  using Decode = bool (*)(std::string_view text, std::string* bytes);

  // Errors: kMalformed for missing, mistyped or unequal arrays, a byte token that is not <0xHH>, a special id that is
  // out of range.
  static Result<Vocabulary> from_gguf(const gguf::Model& file, Decode decode, bool needs_scores);

  uint32_t size() const { return static_cast<uint32_t>(types_.size()); }
  TokenType type(Token id) const { return types_[static_cast<size_t>(id)]; }
  float score(Token id) const { return scores_[static_cast<size_t>(id)]; }  // where scores were asked for

  // The bytes a token stands for; the plain text of control, unknown and user-defined tokens.
  std::string_view bytes(Token id) const {
    const size_t i = static_cast<size_t>(id);
    return std::string_view(blob_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }

  // The token that ordinary text of these bytes may become: never a control, unknown, user-defined or byte token.
  // -1 when there is none; the lowest id where the file has several.
  Token find(std::string_view bytes) const;

  // Appends what spells these bytes one by one: <0xHH>, or the token of that one byte; where the vocabulary has
  // neither, U+FFFD, else the unknown token, else nothing.
  void spell(std::string_view bytes, std::vector<Token>* out) const;

  // From tokenizer.ggml.{bos,eos,unknown}_token_id; -1 where the file names none.
  Token bos() const { return bos_; }
  Token eos() const { return eos_; }
  Token unknown() const { return unknown_; }
  bool ends_generation(Token id) const;

 private:
  Vocabulary() = default;
  Status read_scores(const gguf::Model& file, size_t n_tokens);
  // *findable: what find() may return, by id.
  Status read_tokens(const gguf::Model& file, Decode decode, std::vector<bool>* findable);
  Status read_special_ids(const gguf::Model& file);
  void mark_end_tokens(std::vector<bool>* findable);
  void build_table(const std::vector<bool>& findable);
  void choose_spelling();

  std::string blob_;
  std::vector<uint32_t> begins_;  // [size + 1] into blob_
  std::vector<TokenType> types_;
  std::vector<float> scores_;           // empty, or one a token
  std::vector<Token> table_;            // open addressing, -1 = free; size is a power of two
  size_t longest_ = 0;                  // bytes of the longest token in table_
  std::array<Token, 256> byte_tokens_;  // -1 where there is none
  std::vector<Token> replacement_;      // for a byte without a token
  std::vector<Token> end_tokens_;
  Token bos_ = -1;
  Token eos_ = -1;
  Token unknown_ = -1;
};

}  // namespace leanstream::model
