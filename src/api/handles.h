#pragma once

// What the opaque types of the C interface are.

#include <memory>

#include "leanstream/leanstream.h"
#include "runtime/open_model.h"
#include "runtime/runtime.h"
#include "runtime/session.h"

struct leanstream_runtime {
  leanstream_log_callback log = nullptr;
  void* log_user = nullptr;
  std::unique_ptr<leanstream::runtime::Runtime> runtime;
};

struct leanstream_model {
  std::unique_ptr<leanstream::runtime::OpenModel> model;
};

struct leanstream_session {
  std::unique_ptr<leanstream::runtime::Session> session;
};

namespace leanstream::api {

// A session's parameters as the runtime takes them. NULL gives the defaults. Errors: kInvalidArgument.
Result<runtime::SessionShape> session_shape(const leanstream_session_params* params);
inline runtime::AbortHook abort_hook(const leanstream_session_params* params) {
  return params == nullptr ? runtime::AbortHook{} : runtime::AbortHook{params->abort, params->abort_user};
}

}  // namespace leanstream::api
