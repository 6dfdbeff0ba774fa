// libFuzzer target on the reader:
//   cmake --preset fuzz && cmake --build build/fuzz --target fuzz_gguf_reader
//   build/fuzz/tests/fuzz_gguf_reader -max_total_time=600 new-findings tests/gguf/corpus

#include "tests/gguf/exercise_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  leanstream::gguf::exercise_reader(std::as_bytes(std::span(data, size)));
  return 0;
}
