#pragma once

#include <memory>
#include <string>

#include "runtime/open_model.h"
#include "runtime/runtime.h"
#include "runtime/session.h"
#include "tests/must.h"
#include "tests/runtime/tiny_model.h"

namespace leanstream::runtime::test {

using leanstream::test::must;

inline std::unique_ptr<Runtime> create_runtime(uint32_t threads = 2, uint64_t budget_bytes = 0) {
  RuntimeParams params;
  params.threads = threads;
  params.memory_budget_bytes = budget_bytes;
  return must(Runtime::create(params));
}

inline std::unique_ptr<OpenModel> open_model(Runtime& runtime, const std::string& path,
                                             LoadMode mode = LoadMode::kFull) {
  return must(OpenModel::open(runtime, path, mode, {}, {}));
}

}  // namespace leanstream::runtime::test
