#pragma once

#include <cstdint>

namespace leanstream::gguf {

// A tensor type of the file format, whether or not this library computes with it (find_weight_type of
// kernels/abi/weight_type.h knows those). Enough to find a tensor's bytes and to name it.
struct TensorType {
  uint32_t id;
  const char* name;
  uint32_t block_elements;
  uint32_t block_bytes;
};

// nullptr for an id that the format has never given, or has taken back.
const TensorType* find_tensor_type(uint32_t id);

}  // namespace leanstream::gguf
