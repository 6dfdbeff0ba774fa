#include "handles.h"

namespace leanstream::cli {

Result<leanstream_runtime_info> runtime_info(const leanstream_runtime& runtime) {
  auto info = with_size<leanstream_runtime_info>();
  Status status = checked([&](leanstream_error* e) { return leanstream_runtime_get_info(&runtime, &info, e); });
  if (!status.ok()) return status;
  return info;
}

Result<leanstream_model_info> model_info(const leanstream_model& model) {
  auto info = with_size<leanstream_model_info>();
  Status status = checked([&](leanstream_error* e) { return leanstream_model_get_info(&model, &info, e); });
  if (!status.ok()) return status;
  return info;
}

Result<leanstream_stats> session_stats(const leanstream_session& session) {
  auto stats = with_size<leanstream_stats>();
  Status status = checked([&](leanstream_error* e) { return leanstream_session_get_stats(&session, &stats, e); });
  if (!status.ok()) return status;
  return stats;
}

Result<std::vector<leanstream_token>> tokenize(const leanstream_model& model, std::string_view text, uint32_t flags) {
  return filled<std::vector<leanstream_token>>(
      [&](leanstream_token* tokens, size_t capacity, size_t* needed, leanstream_error* error) {
        return leanstream_tokenize(&model, text.data(), text.size(), flags, tokens, capacity, needed, error);
      });
}

}  // namespace leanstream::cli
