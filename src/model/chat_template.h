#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace leanstream::model {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// Lays a conversation out as one of the common families does, recognised from the Jinja text in
// tokenizer.chat_template. The Jinja itself is not run. A value type.
class ChatTemplate {
 public:
  // nullopt when the template is of no family we know.
  static std::optional<ChatTemplate> recognise(std::string_view jinja);

  const char* family() const;  // "chatml", "llama2", "llama3", "mistral", "gemma"

  // The text, without the BOS that tokenizing adds. add_reply_start opens the assistant's turn at the end.
  // Errors: kInvalidArgument for a role the family does not have, or roles that do not alternate where they must.
  Result<std::string> format(std::span<const ChatMessage> messages, bool add_reply_start) const;

 private:
  enum class Family;
  explicit ChatTemplate(Family family) : family_(family) {}
  Family family_;
};

}  // namespace leanstream::model
