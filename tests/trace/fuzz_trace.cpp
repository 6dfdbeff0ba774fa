// libFuzzer target on the trace reader:
//   cmake --preset fuzz && cmake --build build/fuzz --target fuzz_trace
//   build/fuzz/tests/fuzz_trace -max_total_time=600 new-findings

#include "tests/trace/exercise_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  leanstream::trace::exercise_trace(std::as_bytes(std::span(data, size)));
  return 0;
}
