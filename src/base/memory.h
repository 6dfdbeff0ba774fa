#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace leanstream {

// One anonymous, zeroed mapping, 2 MiB aligned, with transparent huge pages asked for. Owns the mapping.
// Pages count against the process only once touched.
class MappedMemory {
 public:
  static constexpr size_t kAlignment = size_t{2} << 20;

  MappedMemory() = default;  // empty
  static Result<MappedMemory> allocate(size_t size_bytes);

  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  void* base_ = nullptr;  // what mmap gave; data_ is the first aligned byte in it
  size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// Hands out aligned parts of a MappedMemory, front to back. Single-thread; nothing is given back.
class BumpAllocator {
 public:
  explicit BumpAllocator(std::span<std::byte> memory) : memory_(memory) {}

  // nullptr when the memory is used up. `alignment` is a power of two.
  std::byte* allocate(size_t size_bytes, size_t alignment = 64);
  template <typename T>
  T* allocate_array(size_t count) {
    return reinterpret_cast<T*>(allocate(count * sizeof(T)));
  }
  size_t used_bytes() const { return used_; }

 private:
  std::span<std::byte> memory_;
  size_t used_ = 0;
};

// VmHWM and VmRSS of this process in bytes; 0 where /proc does not tell.
uint64_t process_peak_rss_bytes();
uint64_t process_rss_bytes();

// What this process may still allocate without being killed: the least of MemAvailable and the room in its cgroup
// (v1 or v2, and their ancestors). Page cache the cgroup could reclaim counts as room.
uint64_t available_memory_bytes();

}  // namespace leanstream
