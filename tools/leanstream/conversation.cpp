#include "conversation.h"

#include <algorithm>

#include "text.h"

namespace leanstream::cli {

Result<std::vector<leanstream_token>> Conversation::layout(const leanstream_model& model,
                                                           const std::vector<Message>& messages) {
  std::vector<leanstream_chat_message> views;
  for (const Message& message : messages)
    views.push_back({message.role, message.content.data(), message.content.size()});
  return filled<std::vector<leanstream_token>>(
      [&](leanstream_token* tokens, size_t capacity, size_t* needed, leanstream_error* error) {
        return leanstream_chat_tokenize(&model, views.data(), views.size(), 1, tokens, capacity, needed, error);
      });
}

Status Conversation::check_template(const leanstream_model& model, const std::string& system_prompt) {
  std::vector<Message> messages;
  if (!system_prompt.empty()) messages.push_back({"system", system_prompt});
  messages.push_back({"user", "?"});
  return layout(model, messages).status();
}

Status Conversation::prefill() {
  const Result<std::vector<leanstream_token>> result = layout(model_, messages_);
  if (!result.ok()) return result.status();
  const std::vector<leanstream_token>& tokens = *result;

  const uint32_t context = leanstream_session_context(&session_);
  if (tokens.size() > context)
    return {Code::kContextFull,
            formatted("the conversation does not fit any more: it is %zu tokens long and the context "
                      "holds %u (-c sets it)",
                      tokens.size(), context)};
  const leanstream_token* cached = leanstream_session_tokens(&session_);
  const size_t n_cached = leanstream_session_position(&session_);
  // The last token is always prefilled: its logits begin the reply.
  const size_t limit = std::min(n_cached, tokens.size() - 1);
  const size_t shared = static_cast<size_t>(std::mismatch(cached, cached + limit, tokens.begin()).first - cached);
  const Status truncated = checked(
      [&](leanstream_error* e) { return leanstream_session_truncate(&session_, static_cast<uint32_t>(shared), e); });
  if (!truncated.ok()) return truncated;
  return checked([&](leanstream_error* e) {
    return leanstream_session_prefill(&session_, tokens.data() + shared, tokens.size() - shared, e);
  });
}

}  // namespace leanstream::cli
