#pragma once

#include <cstdint>

namespace leanstream::testing {

// Calls of operator new so far, on all threads: allocation_count.cpp replaces it in the whole program.
uint64_t allocation_count();

}  // namespace leanstream::testing
