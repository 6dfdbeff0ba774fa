#include "model/kv_cache.h"

#include <limits>
#include <optional>
#include <string>

#include "base/checked.h"

namespace leanstream::model {
namespace {

constexpr uint64_t kRunAlignment = 64;

std::optional<uint64_t> run_bytes(uint32_t context, size_t row_bytes) {
  const std::optional<uint64_t> rows = checked_mul(context, row_bytes);
  return rows ? checked_align_up(*rows, kRunAlignment) : std::nullopt;
}

std::optional<uint64_t> total_bytes(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes) {
  const std::optional<uint64_t> run = run_bytes(context, row_bytes);
  const std::optional<uint64_t> runs = checked_mul(uint64_t{n_layers} * n_kv_heads, 2);
  return run && runs ? checked_mul(*run, *runs) : std::nullopt;
}

}  // namespace

uint64_t KvCache::bytes_for(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes) {
  return total_bytes(n_layers, n_kv_heads, context, row_bytes).value_or(std::numeric_limits<uint64_t>::max());
}

Result<KvCache> KvCache::create(uint32_t n_layers, uint32_t n_kv_heads, uint32_t context, size_t row_bytes) {
  const std::optional<uint64_t> total = total_bytes(n_layers, n_kv_heads, context, row_bytes);
  if (!total || *total == 0)
    return invalid_argument("cannot create a KV cache: " + std::to_string(n_layers) + " layers of " +
                            std::to_string(n_kv_heads) + " heads and " + std::to_string(context) +
                            " positions make no size");
  Result<MappedMemory> memory = MappedMemory::allocate(*total);
  if (!memory.ok()) return memory.status().with_context("cannot create a KV cache");
  KvCache cache;
  cache.memory_ = std::move(*memory);
  cache.n_kv_heads_ = n_kv_heads;
  cache.context_ = context;
  cache.row_bytes_ = row_bytes;
  cache.run_bytes_ = *run_bytes(context, row_bytes);
  return cache;
}

}  // namespace leanstream::model
