#include "storage_facts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "text.h"

namespace leanstream::cli {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Resident pages over all pages; 1 where it cannot be told.
double resident_share(int descriptor, size_t size_bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const mapping = mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapping == MAP_FAILED) return 1;
  std::vector<unsigned char> flags((size_bytes + page - 1) / page);
  const bool known = mincore(mapping, size_bytes, flags.data()) == 0;
  munmap(mapping, size_bytes);
  if (!known) return 1;
  const auto resident = std::count_if(flags.begin(), flags.end(), [](unsigned char flag) { return flag & 1; });
  return static_cast<double>(resident) / static_cast<double>(flags.size());
}

}  // namespace

StorageFacts storage_facts(const std::string& path) {
  StorageFacts facts;
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return facts;
  const std::string number = formatted("%u:%u", major(status.st_dev), minor(status.st_dev));

  // "36 35 98:0 /root /mount options - ext4 /dev/root options", proc(5).
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device_number, word;
    words >> id >> parent >> device_number;
    if (device_number != number) continue;
    while (words >> word && word != "-") {
    }
    words >> facts.filesystem >> facts.device;
    break;
  }
  const std::string read_ahead = first_line("/sys/class/bdi/" + number + "/read_ahead_kb");
  uint64_t kb = 0;
  const auto [end, error] = std::from_chars(read_ahead.data(), read_ahead.data() + read_ahead.size(), kb);
  if (error == std::errc()) facts.read_ahead_kb = kb;
  // Of a partition, the drive is the folder above.
  const std::string block = "/sys/dev/block/" + number;
  for (const char* up : {"/device/model", "/../device/model"})
    if (facts.drive.empty()) facts.drive = first_line(block + up);
  return facts;
}

bool drop_from_page_cache(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct stat status = {};
  fstat(descriptor, &status);
  fdatasync(descriptor);  // pages not yet written cannot be dropped
  bool dropped = false;
  if (status.st_size > 0 && posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0)
    dropped = resident_share(descriptor, static_cast<size_t>(status.st_size)) <= 0.05;
  close(descriptor);
  return dropped;
}

}  // namespace leanstream::cli
