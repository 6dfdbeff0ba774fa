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
  // row_bytes: one head vector in the cache's form.
  static Result<KvCache> create(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes);
  static uint64_t bytes_for(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes);

  uint32_t context() const { return context_; }
  uint32_t length() const { return length_; }
  size_t row_bytes() const { return row_bytes_; }

  std::byte* keys(uint32_t layer, uint32_t kv_head) const;    // row t at + t * row_bytes()
  std::byte* values(uint32_t layer, uint32_t kv_head) const;

  // The caller has written rows [length(), length() + count) of every head, count <= context() - length().
  void append(uint32_t count) { length_ += count; }
  void truncate(uint32_t length) { if (length < length_) length_ = length; }

 private:
  KvCache() = default;
  MappedMemory memory_;
  uint32_t n_kv_heads_ = 0, context_ = 0, length_ = 0;
  size_t row_bytes_ = 0;
};

}  // namespace leanstream::model
