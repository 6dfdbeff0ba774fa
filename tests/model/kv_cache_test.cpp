#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace leanstream::model {
namespace {

TEST(KvCache, gives_every_layer_head_and_kind_rows_of_its_own) {
  constexpr uint32_t kLayers = 3, kHeads = 2, kContext = 7;
  constexpr size_t kRowBytes = 34;  // odd enough that runs need padding
  Result<KvCache> cache = KvCache::create(kLayers, kHeads, kContext, kRowBytes);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  const auto mark = [](uint32_t layer, uint32_t head, uint32_t which) {
    return static_cast<int>(1 + which + 2 * (head + 2 * layer));
  };
  for (uint32_t layer = 0; layer < kLayers; ++layer)
    for (uint32_t head = 0; head < kHeads; ++head) {
      std::memset(cache->keys(layer, head), mark(layer, head, 0), kContext * kRowBytes);
      std::memset(cache->values(layer, head), mark(layer, head, 1), kContext * kRowBytes);
    }
  for (uint32_t layer = 0; layer < kLayers; ++layer)
    for (uint32_t head = 0; head < kHeads; ++head)
      for (size_t i = 0; i < kContext * kRowBytes; ++i) {
        ASSERT_EQ(std::to_integer<int>(cache->keys(layer, head)[i]), mark(layer, head, 0));
        ASSERT_EQ(std::to_integer<int>(cache->values(layer, head)[i]), mark(layer, head, 1));
      }
}

TEST(KvCache, aligns_each_run_to_a_cache_line) {
  const Result<KvCache> cache = KvCache::create(2, 3, 5, 34);
  ASSERT_TRUE(cache.ok());
  for (uint32_t head = 0; head < 3; ++head) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(cache->keys(1, head)) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(cache->values(1, head)) % 64, 0u);
  }
}

TEST(KvCache, grows_by_append_and_only_shrinks_by_truncate) {
  Result<KvCache> cache = KvCache::create(1, 1, 16, 64);
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cache->length(), 0u);
  EXPECT_EQ(cache->context(), 16u);
  cache->append(10);
  cache->truncate(12);
  EXPECT_EQ(cache->length(), 10u);
  cache->truncate(4);
  EXPECT_EQ(cache->length(), 4u);
  cache->append(12);
  EXPECT_EQ(cache->length(), 16u);
}

TEST(KvCache, refuses_sizes_that_overflow) {
  constexpr uint32_t kHuge = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(KvCache::bytes_for(kHuge, kHuge, kHuge, 1024), std::numeric_limits<uint64_t>::max());
  const Result<KvCache> cache = KvCache::create(kHuge, kHuge, kHuge, 1024);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), Code::kInvalidArgument);
}

TEST(KvCache, bytes_for_is_what_the_rows_take) {
  // 32 layers x 8 heads x 4096 positions x (key + value) x 128 halves
  EXPECT_EQ(KvCache::bytes_for(32, 8, 4096, 256), uint64_t{512} << 20);
}

}  // namespace
}  // namespace leanstream::model
