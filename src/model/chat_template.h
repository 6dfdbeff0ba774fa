#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/tokenizer.h"

namespace leanstream::model {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// A conversation as text. `contents` are the bytes that messages brought along, ascending; the rest is the template's.
struct ChatText {
  std::string text;
  std::vector<TextRange> contents;
};

// Lays a conversation out as one of the common families does, recognised from the Jinja text in
// tokenizer.chat_template. The Jinja itself is not run: what is written around each role's text is known per family,
// and small variations (spaces, trimming, a default system message) are looked up in the text. A value type.
class ChatTemplate {
 public:
  // nullopt when the template is of no family we know. bos and eos: the texts of those tokens, which some families
  // write between turns.
  static std::optional<ChatTemplate> recognise(std::string_view jinja, std::string_view bos = "<s>",
                                               std::string_view eos = "</s>");

  // A template of the family in its usual form, for files that have none. nullopt where families() does not have it.
  static std::optional<ChatTemplate> of_family(std::string_view family, std::string_view bos, std::string_view eos);
  static std::span<const std::string_view> families();

  // "chatml", "llama2", "llama3", "mistral", "mistral-v1", "mistral-v3", "mistral-v3-tekken", "mistral-v7",
  // "mistral-v7-tekken", "gemma", "phi3", "phi4", "zephyr", "deepseek-r1"
  const char* family() const { return family_; }

  // The text, without the BOS that tokenizing adds. add_reply_start opens the assistant's turn at the end.
  // Errors: kInvalidArgument for a role the family does not have, a system message that is not the first, or roles that
  // do not alternate where they must.
  Result<ChatText> lay_out(std::span<const ChatMessage> messages, bool add_reply_start) const;

 private:
  // What stands before and after the text of one role.
  struct Frame {
    std::string before;
    std::string after;
  };
  enum class SystemPlace {
    kOwnTurn,        // a turn like the others
    kFirstUserTurn,  // inside the first user turn, before the user's text
    kLastUserTurn,
  };

  ChatTemplate() = default;
  bool use_chatml(std::string_view jinja);
  bool use_llama3(std::string_view jinja);
  bool use_mistral(std::string_view jinja, const std::string& eos);
  bool use_llama2(std::string_view jinja, const std::string& bos, const std::string& eos);
  bool use_gemma();
  bool use_deepseek_r1();
  bool use_named_roles(std::string_view jinja, const std::string& eos);

  Status check_roles(std::span<const ChatMessage> messages) const;
  std::string_view shown_content(const ChatMessage& message) const;

  const char* family_ = "";
  std::string bos_;
  Frame system_, user_, assistant_;
  std::string reply_start_;
  std::string default_system_;  // used when the first message is not the system's; "" = none
  SystemPlace system_place_ = SystemPlace::kOwnTurn;
  bool writes_empty_system_ = false;   // the system turn is there even when nobody wrote one
  bool trims_ = false;                 // white space around contents goes
  bool trims_replies_ = false;         // around the assistant's
  bool drops_thoughts_ = false;        // an assistant's text up to "</think>" is not repeated
  bool trims_after_thoughts_ = false;  // line breaks after it
  bool must_alternate_ = false;
};

}  // namespace leanstream::model
