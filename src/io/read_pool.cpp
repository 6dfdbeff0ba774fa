#include "io/read_pool.h"

#include <algorithm>
#include <utility>

#include "io/arena_pages.h"
#include "io/device_pool.h"
#include "io/ring_device.h"
#include "io/thread_device.h"

namespace leanstream::io {
namespace {

constexpr uint32_t kMaxReaders = 32;
constexpr double kHugeShare = 0.9;

Status check(const PoolParams& params) {
  const auto within = [](const char* name, uint32_t value, uint32_t most) {
    return value >= 1 && value <= most
               ? Status()
               : invalid_argument("cannot start an I/O pool: " + std::string(name) + ": " + std::to_string(value) +
                                  " is not within 1 and " + std::to_string(most));
  };
  if (Status status = within("workers", params.workers, 16); !status.ok()) return status;
  if (Status status = within("lanes", params.lanes, 16); !status.ok()) return status;
  if (Status status = within("depth", params.depth, 1024); !status.ok()) return status;
  return within("capacity", params.capacity, 1 << 20);
}

using Devices = std::vector<std::unique_ptr<Device>>;

Result<Devices> create_rings(std::span<const int> descriptors, std::span<std::byte> arena, const PoolParams& params,
                             PoolFacts* facts) {
  Devices devices;
  RingFacts ring_facts;
  for (uint32_t i = 0; i < params.workers; ++i) {
    Result<std::unique_ptr<Device>> device =
        create_ring_device(descriptors, arena, params.lanes, params.depth, &ring_facts);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  facts->engine = "io_uring";
  facts->registered_buffers = ring_facts.registered_buffers;
  facts->registered_files = ring_facts.registered_files;
  facts->refusals.insert(facts->refusals.end(), ring_facts.refusals.begin(), ring_facts.refusals.end());
  return devices;
}

Result<Devices> create_readers(std::span<const int> descriptors, const PoolParams& params, PoolFacts* facts) {
  // One worker's queue feeds all readers: that keeps one order of priorities.
  const uint64_t wanted = uint64_t{params.workers} * params.lanes * params.depth;
  Result<std::unique_ptr<Device>> device =
      create_thread_device(descriptors, static_cast<uint32_t>(std::min<uint64_t>(wanted, kMaxReaders)));
  if (!device.ok()) return device.status();
  facts->engine = "pread";
  Devices devices;
  devices.push_back(*std::move(device));
  return devices;
}

Result<Devices> create_devices(std::span<const int> descriptors, std::span<std::byte> arena, const PoolParams& params,
                               PoolFacts* facts) {
  if (params.kind == PoolParams::Kind::kThreads) return create_readers(descriptors, params, facts);
  Result<Devices> rings = create_rings(descriptors, arena, params, facts);
  if (rings.ok() || params.kind == PoolParams::Kind::kRing) return rings;
  facts->refusals.push_back(rings.status().message() + "; threads read with pread instead");
  return create_readers(descriptors, params, facts);
}

}  // namespace

Result<std::unique_ptr<ReadPool>> ReadPool::create(std::span<const StorageFile> files, std::span<std::byte> arena,
                                                   const PoolParams& params) {
  if (Status status = check(params); !status.ok()) return status;
  PoolFacts facts;
  std::vector<int> descriptors;
  facts.direct = true;
  for (const StorageFile& file : files) {
    descriptors.push_back(file.descriptor());
    descriptors.push_back(file.buffered_descriptor());
    if (file.direct()) continue;
    facts.direct = false;
    facts.refusals.push_back(file.path() + " is read through the page cache: " + file.buffered_because());
  }
  fault_in(arena);
  facts.huge_pages = huge_page_share(arena) >= kHugeShare;
  if (!facts.huge_pages && arena.size() >= (size_t{2} << 20))
    facts.refusals.push_back("the arena has few huge pages, or none (see /sys/kernel/mm/transparent_hugepage)");

  Result<Devices> devices = create_devices(descriptors, arena, params, &facts);
  if (!devices.ok()) return devices.status();
  if (params.log.write != nullptr)
    for (const std::string& refusal : facts.refusals) params.log.write(refusal, params.log.user);
  return DevicePool::create(files, params, *std::move(devices), std::move(facts));
}

}  // namespace leanstream::io
