// stream [threads [MiB [passes]]]: the read bandwidth of a plain loop, in GB/s, one line per pass.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "bench/read_loop.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const size_t n_threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2;
  const size_t mebibytes = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1024;
  const int passes = argc > 3 ? std::atoi(argv[3]) : 10;
  const size_t share_bytes = (mebibytes << 20) / (n_threads > 0 ? n_threads : 1) / 4096 * 4096;

  auto memory = leanstream::MappedMemory::allocate(share_bytes * n_threads);
  if (!memory.ok() || share_bytes == 0) {
    std::fprintf(stderr, "stream: nothing to read: %s\n", memory.status().message().c_str());
    return 1;
  }
  std::memset(memory->data(), 1, memory->size_bytes());
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<uint64_t> sums(n_threads);
    std::vector<std::thread> threads;
    const auto start = Clock::now();
    for (size_t t = 0; t < n_threads; ++t) {
      threads.emplace_back([&, t] {
        sums[t] = leanstream::bench::read_all({memory->data() + t * share_bytes, share_bytes});
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (sums[0] == 0) return 1;  // keeps the loop
    std::printf("%.2f GB/s\n", static_cast<double>(share_bytes * n_threads) / seconds * 1e-9);
  }
}
