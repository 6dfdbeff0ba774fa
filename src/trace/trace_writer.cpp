#include "trace/trace_writer.h"

#include <bit>
#include <cassert>

#include "base/checked.h"
#include "trace/block.h"

namespace leanstream::trace {
namespace {

constexpr size_t kMaxVarintBytes = 10;
constexpr size_t kFileBufferBytes = size_t{1} << 20;  // AtomicFileWriter's

size_t bitmap_bytes(uint32_t pieces) {
  return ceil_div(pieces, 8);
}

// The first bit from `from` on that is `value`; `count` where there is none.
uint32_t find_bit(std::span<const uint64_t> bitmap, uint32_t from, uint32_t count, bool value) {
  const uint64_t flip = value ? 0 : ~uint64_t{0};
  while (from < count) {
    const uint64_t word = (bitmap[from / 64] ^ flip) >> (from % 64);
    if (word != 0) return std::min(count, from + static_cast<uint32_t>(std::countr_zero(word)));
    from = (from / 64 + 1) * 64;
  }
  return count;
}

}  // namespace

Result<TraceWriter> TraceWriter::create(const std::string& path, const Header& header) {
  if (Status status = check(header); !status.ok()) return status;
  Result<AtomicFileWriter> file = AtomicFileWriter::create(path);
  if (!file.ok()) return file.status();
  TraceWriter writer(*std::move(file), header);
  if (Status status = writer.write(kMagic); !status.ok()) return status;
  const std::string encoded = encode(header);
  if (Status status = writer.write_block(std::as_bytes(std::span(encoded))); !status.ok()) return status;
  return writer;
}

uint64_t TraceWriter::bytes_for(const Header& header) {
  uint64_t payload = 0, widest = 0;
  for (const auto& layer : header.layers) {
    const uint64_t bytes = bitmap_bytes(piece_count(layer)) + kMaxVarintBytes;
    payload += bytes;
    widest = std::max(widest, bytes);
  }
  return payload + 2 * widest + header.layers.size() * sizeof(uint32_t) + 2 * kFileBufferBytes;
}

TraceWriter::TraceWriter(AtomicFileWriter file, const Header& header) : file_(std::move(file)) {
  size_t payload = 0, widest = 0;
  for (const auto& layer : header.layers) {
    layer_pieces_.push_back(piece_count(layer));
    widest = std::max(widest, bitmap_bytes(layer_pieces_.back()) + kMaxVarintBytes);
    payload += bitmap_bytes(layer_pieces_.back()) + kMaxVarintBytes;
  }
  payload_.reserve(payload);
  runs_.reserve(widest + 2 * kMaxVarintBytes);
}

void TraceWriter::add_layer(std::span<const uint64_t> bitmap) {
  assert(layer_ < layer_pieces_.size());
  const uint32_t pieces = layer_pieces_[layer_++];
  const size_t most = bitmap_bytes(pieces);
  assert(bitmap.size() * 8 >= most);
  runs_.clear();
  uint64_t runs = 0;
  uint32_t end = 0;
  for (uint32_t begin; runs_.size() <= most && (begin = find_bit(bitmap, end, pieces, true)) < pieces; ++runs) {
    const uint32_t previous_end = end;
    end = find_bit(bitmap, begin, pieces, false);
    append_varint(runs_, begin - previous_end);
    append_varint(runs_, end - begin - 1);
  }
  if (runs_.size() <= most) {
    append_varint(payload_, 2 * runs);
    payload_ += runs_;
    return;
  }
  append_varint(payload_, 1);
  for (size_t i = 0; i < most; ++i) payload_.push_back(static_cast<char>(bitmap[i / 8] >> (i % 8 * 8)));
}

void TraceWriter::add_whole_layer() {
  assert(layer_ < layer_pieces_.size());
  const uint32_t pieces = layer_pieces_[layer_++];
  append_varint(payload_, pieces == 0 ? 0 : 2);
  if (pieces == 0) return;
  append_varint(payload_, 0);
  append_varint(payload_, pieces - 1);
}

Status TraceWriter::end_token() {
  assert(layer_ == layer_pieces_.size());
  const Status status = write_block(std::as_bytes(std::span(payload_)));
  payload_.clear();
  layer_ = 0;
  ++tokens_;
  return status;
}

Status TraceWriter::commit() {
  frame_.clear();
  append_varint(frame_, 0);
  append_varint(frame_, tokens_);
  if (Status status = write(frame_); !status.ok()) return status;
  failure_ = file_.commit();
  return failure_;
}

Status TraceWriter::write_block(std::span<const std::byte> payload) {
  frame_.clear();
  append_varint(frame_, payload.size());
  if (Status status = write(frame_); !status.ok()) return status;
  if (Status status = write({reinterpret_cast<const char*>(payload.data()), payload.size()}); !status.ok())
    return status;
  frame_.clear();
  append_checksum(frame_, payload);
  return write(frame_);
}

Status TraceWriter::write(std::string_view bytes) {
  if (failure_.ok()) failure_ = file_.write(std::as_bytes(std::span(bytes)));
  return failure_;
}

}  // namespace leanstream::trace
