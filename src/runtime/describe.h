#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gguf/reader.h"

namespace leanstream::runtime {

// What the tensors of a file add up to.
struct TensorSummary {
  uint64_t parameters = 0;    // elements
  uint64_t weight_bytes = 0;  // in the file
  std::string weight_type;    // the type that holds most bytes; "" without tensors
};
TensorSummary summarise_tensors(const gguf::Model& file);

// The head of the file as leanstream_model_describe lays it out.
std::string describe_json(const gguf::Model& file, size_t max_array);

}  // namespace leanstream::runtime
