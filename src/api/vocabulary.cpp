// Text to tokens and back, and chat templates.

#include <vector>

#include "api/boundary.h"
#include "api/handles.h"

namespace leanstream::api {
namespace {

constexpr uint32_t kKnownFlags = LEANSTREAM_TOKENIZE_BOS | LEANSTREAM_TOKENIZE_SPECIAL;

Result<const model::Tokenizer*> tokenizer_of(const leanstream_model* handle) {
  if (const model::Tokenizer* tokenizer = handle->model->tokenizer()) return tokenizer;
  return unsupported("no vocabulary: " + handle->model->path() + " was opened with LEANSTREAM_LOAD_METADATA");
}

Status check_flags(uint32_t flags) {
  if ((flags & ~kKnownFlags) == 0) return {};
  return invalid_argument("flags are " + std::to_string(flags) + ": only bits of " + std::to_string(kKnownFlags) +
                          " mean something");
}

Status tokenize(const leanstream_model* model, const char* text, size_t length, uint32_t flags,
                leanstream_token* tokens, size_t capacity, size_t* needed) {
  if (Status status = require({{model, "model"}, {needed, "needed"}}); !status.ok()) return status;
  if (text == nullptr && length != 0) return invalid_argument("text is NULL and its length is not 0");
  if (length > size_t{1} << 31)
    return invalid_argument("the text has " + std::to_string(length) + " bytes, the most is 2147483648");
  if (Status status = check_flags(flags); !status.ok()) return status;
  const Result<const model::Tokenizer*> tokenizer = tokenizer_of(model);
  if (!tokenizer.ok()) return tokenizer.status();

  model::Tokenizer::Options options;
  options.bos = (flags & LEANSTREAM_TOKENIZE_BOS) != 0;
  options.special = (flags & LEANSTREAM_TOKENIZE_SPECIAL) != 0;
  const std::vector<model::Token> ids = (*tokenizer)->encode({text, length}, options);
  return fill_buffer(std::span<const leanstream_token>(ids), tokens, capacity, needed, "tokens");
}

Status detokenize(const leanstream_model* model, const leanstream_token* tokens, size_t count, uint32_t flags,
                  char* buffer, size_t capacity, size_t* needed) {
  if (Status status = require({{model, "model"}, {needed, "needed"}}); !status.ok()) return status;
  if (tokens == nullptr && count != 0) return invalid_argument("tokens is NULL and count is not 0");
  if (Status status = check_flags(flags); !status.ok()) return status;
  const Result<const model::Tokenizer*> tokenizer = tokenizer_of(model);
  if (!tokenizer.ok()) return tokenizer.status();

  const uint32_t size = (*tokenizer)->size();
  for (size_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= size)
      return invalid_argument("token " + std::to_string(tokens[i]) + " at index " + std::to_string(i) +
                              " is none: the vocabulary has ids from 0 to " + std::to_string(size - 1));
  const std::string text = (*tokenizer)->decode(tokens, count, (flags & LEANSTREAM_TOKENIZE_SPECIAL) != 0);
  return fill_buffer(std::span<const char>(text), buffer, capacity, needed, "bytes");
}

// Why there is no template to use: none in the file, or one that begins like this.
Status no_template(const runtime::OpenModel& model) {
  constexpr size_t kQuotedBytes = 60;
  const Result<std::optional<std::string>> jinja = model.file().find_string("tokenizer.chat_template");
  if (!jinja.ok()) return jinja.status();
  if (!*jinja) return unsupported("no chat template: " + model.path() + " has none");
  char quoted[kQuotedBytes + 1];
  copy_text(**jinja, quoted, sizeof quoted);
  return unsupported("unknown chat template: that of " + model.path() + " begins \"" + quoted + "\"");
}

Result<model::ChatText> lay_out(const leanstream_model* handle, const leanstream_chat_message* messages, size_t count,
                                bool add_reply_start) {
  if (messages == nullptr && count != 0) return invalid_argument("messages is NULL and count is not 0");
  if (const auto tokenizer = tokenizer_of(handle); !tokenizer.ok()) return tokenizer.status();
  if (!handle->model->chat_template()) return no_template(*handle->model);

  std::vector<model::ChatMessage> conversation;
  conversation.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const leanstream_chat_message& message = messages[i];
    if (message.role == nullptr || (message.content == nullptr && message.content_length != 0))
      return invalid_argument("message " + std::to_string(i) + ": its role or content is NULL");
    conversation.push_back(
        {message.role, std::string(message.content_length == 0 ? "" : message.content, message.content_length)});
  }
  return handle->model->chat_template()->lay_out(conversation, add_reply_start);
}

Status chat_format(const leanstream_model* model, const leanstream_chat_message* messages, size_t count,
                   bool add_reply_start, char* buffer, size_t capacity, size_t* needed) {
  if (Status status = require({{model, "model"}, {needed, "needed"}}); !status.ok()) return status;
  const Result<model::ChatText> chat = lay_out(model, messages, count, add_reply_start);
  if (!chat.ok()) return chat.status();
  return fill_buffer(std::span<const char>(chat->text), buffer, capacity, needed, "bytes");
}

Status chat_tokenize(const leanstream_model* model, const leanstream_chat_message* messages, size_t count,
                     bool add_reply_start, leanstream_token* tokens, size_t capacity, size_t* needed) {
  if (Status status = require({{model, "model"}, {needed, "needed"}}); !status.ok()) return status;
  const Result<model::ChatText> chat = lay_out(model, messages, count, add_reply_start);
  if (!chat.ok()) return chat.status();
  model::Tokenizer::Options options;
  options.bos = options.special = true;
  options.plain = chat->contents;
  const std::vector<model::Token> ids = model->model->tokenizer()->encode(chat->text, options);
  return fill_buffer(std::span<const leanstream_token>(ids), tokens, capacity, needed, "tokens");
}

}  // namespace
}  // namespace leanstream::api

using namespace leanstream;

leanstream_status leanstream_tokenize(const leanstream_model* model, const char* text, size_t text_length,
                                      uint32_t flags, leanstream_token* tokens, size_t capacity, size_t* needed,
                                      leanstream_error* error) {
  return api::guarded(error, [&] { return api::tokenize(model, text, text_length, flags, tokens, capacity, needed); });
}

leanstream_status leanstream_detokenize(const leanstream_model* model, const leanstream_token* tokens, size_t count,
                                        uint32_t flags, char* buffer, size_t capacity, size_t* needed,
                                        leanstream_error* error) {
  return api::guarded(error, [&] { return api::detokenize(model, tokens, count, flags, buffer, capacity, needed); });
}

int leanstream_token_ends_generation(const leanstream_model* model, leanstream_token token) {
  const model::Tokenizer* tokenizer = model == nullptr ? nullptr : model->model->tokenizer();
  if (tokenizer == nullptr || token < 0 || static_cast<uint32_t>(token) >= tokenizer->size()) return 0;
  return tokenizer->ends_generation(token) ? 1 : 0;
}

leanstream_status leanstream_chat_format(const leanstream_model* model, const leanstream_chat_message* messages,
                                         size_t count, int add_reply_start, char* buffer, size_t capacity,
                                         size_t* needed, leanstream_error* error) {
  return api::guarded(
      error, [&] { return api::chat_format(model, messages, count, add_reply_start != 0, buffer, capacity, needed); });
}

leanstream_status leanstream_chat_tokenize(const leanstream_model* model, const leanstream_chat_message* messages,
                                           size_t count, int add_reply_start, leanstream_token* tokens, size_t capacity,
                                           size_t* needed, leanstream_error* error) {
  return api::guarded(error, [&] {
    return api::chat_tokenize(model, messages, count, add_reply_start != 0, tokens, capacity, needed);
  });
}
