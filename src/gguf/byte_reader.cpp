#include "gguf/byte_reader.h"

#include <algorithm>

#include "base/checked.h"

namespace leanstream::gguf {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

}  // namespace

ByteReader::ByteReader(const File& file) : file_(file), limit_(std::min(file.size_bytes(), kMaxHeadBytes)) {}

void ByteReader::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool ByteReader::can_hold(uint64_t count, uint64_t min_bytes, const std::string& what) {
  if (!ok()) return false;
  const std::optional<uint64_t> need = checked_mul(count, min_bytes);
  if (need && *need <= remaining()) return true;
  std::string message = what + " at byte " + std::to_string(position()) + " cannot fit: ";
  if (limit_ < file_.size_bytes()) {
    fail(unsupported(message + "the head would be larger than " + std::to_string(kMaxHeadBytes) + " bytes"));
  } else {
    fail(malformed(message + "the file ends at byte " + std::to_string(file_.size_bytes()) +
                   " (cut short, or not valid)"));
  }
  return false;
}

void ByteReader::read(std::span<std::byte> out) {
  if (!ok() || out.size() > remaining()) {
    can_hold(out.size(), 1, "a value of " + std::to_string(out.size()) + " bytes");
    std::fill(out.begin(), out.end(), std::byte{0});
    return;
  }
  while (!out.empty()) {
    if (buffer_used_ == buffer_.size()) refill();
    if (!ok()) {
      std::fill(out.begin(), out.end(), std::byte{0});
      return;
    }
    const size_t n = std::min(out.size(), buffer_.size() - buffer_used_);
    std::memcpy(out.data(), buffer_.data() + buffer_used_, n);
    buffer_used_ += n;
    out = out.subspan(n);
  }
}

// The caller has checked that at least one byte remains.
void ByteReader::refill() {
  buffer_begin_ += buffer_.size();
  buffer_used_ = 0;
  buffer_.resize(std::min<uint64_t>(kBufferBytes, limit_ - buffer_begin_));
  if (Status s = file_.read_at(buffer_begin_, buffer_); !s.ok()) fail(std::move(s));
}

uint64_t ByteReader::string_length() {
  const uint64_t length = number<uint64_t>();
  if (ok() && length > remaining()) can_hold(length, 1, "a string of " + std::to_string(length) + " bytes");
  return ok() ? length : 0;
}

std::string ByteReader::string() {
  std::string s(string_length(), '\0');
  read(std::as_writable_bytes(std::span(s)));
  return ok() ? s : std::string();
}

}  // namespace leanstream::gguf
