#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leanstream::cli {

// What a file lies on, as far as the system tells; "" and nothing where it does not.
struct StorageFacts {
  std::string filesystem;  // "ext4"
  std::string device;      // "/dev/nvme0n1p2", or what else is mounted there
  std::string drive;       // "Samsung SSD 980 1TB"
  std::optional<uint64_t> read_ahead_kb;
};

StorageFacts storage_facts(const std::string& path);

// Asks the system to forget the file's pages. True when at most a twentieth of them is still in memory, so that the
// next read is from the drive.
bool drop_from_page_cache(const std::string& path);

}  // namespace leanstream::cli
