#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "handles.h"

namespace leanstream::cli {

// The messages so far and the session that answers them. The KV cache stays across turns: of each new prompt only what
// it does not share with the cache is prefilled. Borrows the session and its model. Single-thread.
class Conversation {
 public:
  Conversation(const leanstream_model& model, leanstream_session& session) : model_(model), session_(session) {}

  // Errors: as of leanstream_chat_tokenize, for a conversation of one message.
  static Status check_template(const leanstream_model& model, const std::string& system_prompt);

  void add(const char* role, std::string content) { messages_.push_back({role, std::move(content)}); }
  void remove_last() { messages_.pop_back(); }

  // Lays the conversation out, ending in the opening of a reply, and prefills what is new, so that the session can
  // generate. Errors: kContextFull with both numbers, kCancelled; the cache is then as it was or shorter.
  Status prefill();

 private:
  struct Message {
    const char* role;
    std::string content;
  };

  static Result<std::vector<leanstream_token>> layout(const leanstream_model& model,
                                                      const std::vector<Message>& messages);

  const leanstream_model& model_;
  leanstream_session& session_;
  std::vector<Message> messages_;
};

}  // namespace leanstream::cli
