#pragma once

#include <gtest/gtest.h>
#include <leanstream/leanstream.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/runtime/tiny_model.h"

namespace leanstream::api::test {

struct Destroyer {
  void operator()(leanstream_runtime* runtime) const { leanstream_runtime_destroy(runtime); }
  void operator()(leanstream_model* model) const { leanstream_model_destroy(model); }
  void operator()(leanstream_session* session) const { leanstream_session_destroy(session); }
};
using RuntimePtr = std::unique_ptr<leanstream_runtime, Destroyer>;
using ModelPtr = std::unique_ptr<leanstream_model, Destroyer>;
using SessionPtr = std::unique_ptr<leanstream_session, Destroyer>;

// A struct of the interface as its _init function leaves it.
template <typename Params>
Params initialised(void (*init)(Params*)) {
  Params params;
  init(&params);
  return params;
}
// A struct that the library fills.
template <typename Info>
Info sized() {
  Info info{};
  info.struct_size = sizeof info;
  return info;
}

inline RuntimePtr create_runtime(uint64_t budget_bytes = 0) {
  auto params = initialised(leanstream_runtime_params_init);
  params.threads = 2;
  params.memory_budget_bytes = budget_bytes;
  leanstream_runtime* runtime = nullptr;
  leanstream_error error;
  EXPECT_EQ(leanstream_runtime_create(&params, &runtime, &error), LEANSTREAM_OK) << error.message;
  return RuntimePtr(runtime);
}

inline ModelPtr open_model(const RuntimePtr& runtime, const std::string& path,
                           leanstream_load_mode mode = LEANSTREAM_LOAD_FULL) {
  auto params = initialised(leanstream_model_params_init);
  params.mode = mode;
  leanstream_model* model = nullptr;
  leanstream_error error;
  EXPECT_EQ(leanstream_model_open(runtime.get(), path.c_str(), &params, &model, &error), LEANSTREAM_OK)
      << error.message;
  return ModelPtr(model);
}

inline SessionPtr create_session(const ModelPtr& model, uint32_t context = 0, uint32_t max_logits = 1) {
  auto params = initialised(leanstream_session_params_init);
  params.context = context;
  params.max_logits = max_logits;
  leanstream_session* session = nullptr;
  leanstream_error error;
  EXPECT_EQ(leanstream_session_create(model.get(), &params, &session, &error), LEANSTREAM_OK) << error.message;
  return SessionPtr(session);
}

// Fails unless `status` is `expected` and the error, when given, says the same with a sentence.
inline void expect_error(leanstream_status status, leanstream_status expected, const leanstream_error& error,
                         const std::string& part = "") {
  EXPECT_EQ(status, expected) << error.message;
  EXPECT_EQ(error.status, expected);
  EXPECT_STRNE(error.message, "");
  EXPECT_NE(std::string(error.message).find(part), std::string::npos) << "'" << part << "' in: " << error.message;
}

}  // namespace leanstream::api::test
