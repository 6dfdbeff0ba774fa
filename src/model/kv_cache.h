#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.h"
#include "base/status.h"

namespace leanstream::model {

// Keys and values of every position of one sequence. One run of rows per (layer, KV head), so that attention reads
// one head front to back. Rows from length() on hold nothing meaningful. Externally synchronised.
class KvCache {
 public:
  // row_bytes: one head vector in the cache's form. Errors: kIo, kInvalidArgument (sizes that overflow).
  static Result<KvCache> create(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes);

  // What create() maps; UINT64_MAX when it would overflow.
  static uint64_t bytes_for(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes);

  uint32_t context() const { return context_; }
  uint32_t length() const { return length_; }
  size_t row_bytes() const { return row_bytes_; }

  // Row t is at + t * row_bytes(). 64-byte aligned.
  std::byte* keys(uint32_t layer, uint32_t kv_head) const { return run(layer, kv_head, 0); }
  std::byte* values(uint32_t layer, uint32_t kv_head) const { return run(layer, kv_head, 1); }

  // The caller has written rows [length(), length() + count) of every head, count <= context() - length().
  void append(uint32_t count) { length_ += count; }
  void truncate(uint32_t length) {
    if (length < length_) length_ = length;
  }

 private:
  KvCache() = default;

  // [n_layers, n_kv_heads, 2] runs of run_bytes_: keys, then values.
  std::byte* run(uint32_t layer, uint32_t kv_head, uint32_t which) const {
    return memory_.data() + ((uint64_t{layer} * n_kv_heads_ + kv_head) * 2 + which) * run_bytes_;
  }

  MappedMemory memory_;
  uint32_t n_kv_heads_ = 0, context_ = 0, length_ = 0;
  size_t row_bytes_ = 0, run_bytes_ = 0;
};

}  // namespace leanstream::model
