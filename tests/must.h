#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "base/status.h"

namespace leanstream::test {

// A value of a Result that the test takes for granted.
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    std::abort();
  }
  return *std::move(result);
}

}  // namespace leanstream::test
