// Bandwidth and CPU share of reads by size and depth: the pool on rings, the pool on threads, and, as the reference,
// plain threads that call pread() with O_DIRECT into huge pages. The three take turns in every cell, so that a busy
// machine or drive disturbs them alike.
//
//   bench_io_sweep FILE [--pattern rand|seq] [--sizes 64K,1M] [--depths 1,8,32] [--ms 200] [--repeats 1] [--workers 1]
//                 [--lanes 1] [--engines ring,threads,plain]
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "base/units.h"
#include "io/clock.h"
#include "io/read_pool.h"

using namespace leanstream;
using namespace leanstream::io;

namespace {

struct Options {
  std::string file;
  bool sequential = false;
  std::vector<uint32_t> sizes{16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
  std::vector<uint32_t> depths{1, 4, 8, 16, 32};
  uint32_t ms = 200, repeats = 1, workers = 1, lanes = 1;
  std::vector<std::string> engines{"ring", "threads", "plain"};
};

struct Sample {
  double gb_per_s = 0;
  double cores = 0;  // user and system time of the whole process
};

uint64_t cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) { return uint64_t(t.tv_sec) * 1'000'000 + uint64_t(t.tv_usec); };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// Where the next read goes: random blocks, or the file from front to back. Thread-safe.
class Places {
 public:
  Places(uint64_t file_bytes, uint32_t size, bool sequential)
      : count_((file_bytes - size) / 4096 + 1), size_(size), slots_(file_bytes / size), sequential_(sequential) {}
  uint64_t next() {
    const uint64_t n = next_.fetch_add(1, std::memory_order_relaxed);
    if (sequential_) return n % slots_ * size_;
    uint64_t x = n + 0x9e3779b97f4a7c15u * (size_ + 1);  // splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % count_ * 4096;
  }

 private:
  const uint64_t count_;
  const uint32_t size_;
  const uint64_t slots_;
  const bool sequential_;
  static inline std::atomic<uint64_t> next_{static_cast<uint64_t>(now_us())};
};

// The time and CPU of one measurement.
class Meter {
 public:
  explicit Meter(uint32_t ms) : start_us_(now_us()), cpu_us_(cpu_us()), ms_(ms) {}
  bool running() const { return now_us() - start_us_ < uint64_t{ms_} * 1000; }
  Sample sample(uint64_t bytes) const {
    const double us = double(now_us() - start_us_);
    return {double(bytes) / us / 1e3, double(cpu_us() - cpu_us_) / us};
  }

 private:
  const uint64_t start_us_, cpu_us_;
  const uint32_t ms_;
};

Sample run_pool(ReadPool& pool, std::vector<ArrivalFlag>& flags, Places& places, std::span<std::byte> arena,
                uint32_t size, uint32_t depth, uint32_t ms) {
  std::vector<uint32_t> fills;
  for (uint32_t i = 0; i < depth; ++i) fills.push_back(flags[i].filled);
  const auto submit = [&](uint32_t i) {
    Read read;
    read.size = size;
    read.offset = places.next();
    read.buffer = arena.data() + size_t{i} * size;
    read.flag = &flags[i];
    read.fill = ++fills[i];
    pool.submit({&read, 1});
  };
  const auto check = [](const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "bench_io_sweep: %s\n", status.message().c_str());
    std::exit(1);
  };
  const Meter meter(ms);
  uint64_t arrived = 0;
  for (uint32_t i = 0; i < depth; ++i) submit(i);
  for (uint32_t i = 0; meter.running(); i = (i + 1) % depth) {
    check(pool.wait(flags[i], fills[i], nullptr, nullptr));
    ++arrived;
    submit(i);
  }
  // The reads in flight count, with the time they take, as they do for plain threads.
  for (uint32_t i = 0; i < depth; ++i) check(pool.wait(flags[i], fills[i], nullptr, nullptr));
  return meter.sample((arrived + depth) * size);
}

Sample run_plain(int fd, Places& places, std::span<std::byte> arena, uint32_t size, uint32_t threads, uint32_t ms) {
  const Meter meter(ms);
  std::atomic<uint64_t> bytes{0};
  std::vector<std::thread> readers;
  for (uint32_t i = 0; i < threads; ++i)
    readers.emplace_back([&, i] {
      while (meter.running()) {
        const ssize_t n = ::pread(fd, arena.data() + size_t{i} * size, size, static_cast<off_t>(places.next()));
        if (n != static_cast<ssize_t>(size)) {
          std::fprintf(stderr, "bench_io_sweep: pread: %s\n", std::strerror(errno));
          std::exit(1);
        }
        bytes += size;
      }
    });
  for (std::thread& reader : readers) reader.join();
  return meter.sample(bytes);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<uint32_t> numbers(const std::string& text) {
  std::vector<uint32_t> values;
  for (const std::string& part : split(text)) {
    const Result<uint64_t> value = parse_size(part, 0);
    if (!value.ok() || *value == 0 || *value > (1u << 30)) return {};
    values.push_back(static_cast<uint32_t>(*value));
  }
  return values;
}

bool parse(int argc, char** argv, Options* options) {
  if (argc < 2 || argc % 2 != 0) return false;
  options->file = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    const std::vector<uint32_t> list = numbers(value);
    const auto one = [&](uint32_t* out) { return list.size() == 1 ? (*out = list[0], true) : false; };
    bool good = true;
    if (name == "--pattern") {
      options->sequential = value == "seq";
      good = value == "seq" || value == "rand";
    } else if (name == "--sizes") {
      options->sizes = list;
      good = !list.empty();
    } else if (name == "--depths") {
      options->depths = list;
      good = !list.empty();
    } else if (name == "--engines") {
      options->engines = split(value);
    } else {
      good = (name == "--ms" && one(&options->ms)) || (name == "--repeats" && one(&options->repeats)) ||
             (name == "--workers" && one(&options->workers)) || (name == "--lanes" && one(&options->lanes));
    }
    if (!good) return false;
  }
  return true;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<std::unique_ptr<ReadPool>> make_pool(const StorageFile& file, std::span<std::byte> arena, const Options& options,
                                            PoolParams::Kind kind) {
  PoolParams params;
  params.kind = kind;
  params.workers = options.workers;
  params.lanes = options.lanes;
  params.depth = *std::max_element(options.depths.begin(), options.depths.end());
  params.log.write = [](std::string_view line, void*) {
    std::fprintf(stderr, "%.*s\n", int(line.size()), line.data());
  };
  return ReadPool::create({&file, 1}, arena, params);
}

int sweep(const Options& options) {
  Result<StorageFile> file = StorageFile::open(options.file);
  const size_t arena_bytes = size_t{*std::max_element(options.sizes.begin(), options.sizes.end())} *
                             *std::max_element(options.depths.begin(), options.depths.end());
  Result<MappedMemory> memory = MappedMemory::allocate(arena_bytes);
  if (!file.ok() || !memory.ok()) {
    std::fprintf(stderr, "bench_io_sweep: %s\n", (file.ok() ? memory.status() : file.status()).message().c_str());
    return 1;
  }
  const std::span<std::byte> arena(memory->data(), memory->size_bytes());
  std::vector<ArrivalFlag> flags(*std::max_element(options.depths.begin(), options.depths.end()));  // outlive the pools
  Result<std::unique_ptr<ReadPool>> ring = make_pool(*file, arena, options, PoolParams::Kind::kRing);
  Result<std::unique_ptr<ReadPool>> threads = make_pool(*file, arena, options, PoolParams::Kind::kThreads);
  if (!ring.ok() || !threads.ok()) {
    std::fprintf(stderr, "bench_io_sweep: %s\n", (ring.ok() ? threads.status() : ring.status()).message().c_str());
    return 1;
  }
  std::printf("%8s %6s", "KiB", "depth");
  for (const std::string& engine : options.engines) std::printf(" | %8s GB/s  cores", engine.c_str());
  std::printf("\n");
  std::vector<double> best(options.engines.size(), 0);
  for (const uint32_t size : options.sizes)
    for (const uint32_t depth : options.depths) {
      std::vector<std::vector<double>> rates(best.size()), cores(best.size());
      Places places(file->size_bytes(), size, options.sequential);
      for (uint32_t repeat = 0; repeat < options.repeats; ++repeat)
        for (size_t e = 0; e < best.size(); ++e) {
          const std::string& engine = options.engines[e];
          const Sample sample =
              engine == "plain"
                  ? run_plain(file->descriptor(), places, arena, size, depth, options.ms)
                  : run_pool(engine == "ring" ? **ring : **threads, flags, places, arena, size, depth, options.ms);
          rates[e].push_back(sample.gb_per_s);
          cores[e].push_back(sample.cores);
        }
      std::printf("%8u %6u", size / 1024, depth);
      for (size_t e = 0; e < best.size(); ++e) {
        std::printf(" | %13.2f  %5.2f", median(rates[e]), median(cores[e]));
        best[e] = std::max(best[e], median(rates[e]));
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  std::printf("%15s", "best");
  for (const double rate : best) std::printf(" | %13.2f       ", rate);
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(
        stderr,
        "usage: bench_io_sweep FILE [--pattern rand|seq] [--sizes 64K,1M] [--depths 1,8,32] [--ms 200] [--repeats 1]\n"
        "                [--workers 1] [--lanes 1] [--engines ring,threads,plain]\n");
    return 2;
  }
  return sweep(options);
}
