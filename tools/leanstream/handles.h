#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "leanstream/leanstream.h"

// The C API as this command line uses it: owners instead of pointers, Status instead of error structs.
namespace leanstream::cli {

struct Destroy {
  void operator()(leanstream_runtime* runtime) const { leanstream_runtime_destroy(runtime); }
  void operator()(leanstream_model* model) const { leanstream_model_destroy(model); }
  void operator()(leanstream_session* session) const { leanstream_session_destroy(session); }
};
using Runtime = std::unique_ptr<leanstream_runtime, Destroy>;
using Model = std::unique_ptr<leanstream_model, Destroy>;
using Session = std::unique_ptr<leanstream_session, Destroy>;

// What `call(leanstream_error*)` returned, with its sentence.
template <typename Call>
Status checked(Call&& call) {
  leanstream_error error = {};
  const leanstream_status status = call(&error);
  if (status == LEANSTREAM_OK) return {};
  return {static_cast<Code>(status), error.message[0] ? error.message : leanstream_status_name(status)};
}

// Calls `fill(buffer, capacity, &needed, &error)` once for the size and once for the contents.
template <typename Container, typename Fill>
Result<Container> filled(Fill&& fill) {
  Container contents;
  for (;;) {
    size_t needed = 0;
    Status status = checked([&](leanstream_error* error) {
      return fill(contents.empty() ? nullptr : contents.data(), contents.size(), &needed, error);
    });
    if (status.ok()) {
      contents.resize(needed);
      return contents;
    }
    if (status.code() != Code::kBufferTooSmall) return status;
    contents.resize(needed);
  }
}

template <typename Struct>
Struct with_size() {
  Struct value = {};
  value.struct_size = sizeof value;
  return value;
}

Result<leanstream_runtime_info> runtime_info(const leanstream_runtime& runtime);
Result<leanstream_model_info> model_info(const leanstream_model& model);
Result<leanstream_stats> session_stats(const leanstream_session& session);

// flags: LEANSTREAM_TOKENIZE_*.
Result<std::vector<leanstream_token>> tokenize(const leanstream_model& model, std::string_view text, uint32_t flags);

}  // namespace leanstream::cli
