#include "trace/trace_reader.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"

namespace leanstream::trace {
namespace {

constexpr uint64_t kMaxSteps = UINT32_MAX - 1;  // what the cache numbers them with

struct Block {
  std::span<const std::byte> payload;
  bool whole = false;  // false: the bytes end first
  bool intact = false;
};

// The rest of a block whose length has been read.
Block take_block(Cursor& cursor, uint64_t length) {
  Block block;
  const auto payload = cursor.take(length);
  const auto checksum = payload ? cursor.take(kChecksumBytes) : std::nullopt;
  if (!checksum) return block;
  block.payload = *payload;
  block.whole = true;
  block.intact = checksum_matches(*payload, *checksum);
  return block;
}

}  // namespace

Result<TraceReader> TraceReader::open(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  const std::string_view family = kMagic.substr(0, kMagic.size() - 1);
  const auto magic = cursor.take(kMagic.size());
  const std::string_view found =
      magic ? std::string_view(reinterpret_cast<const char*>(magic->data()), magic->size()) : std::string_view();
  if (!found.starts_with(family))
    return malformed("it is no trace: it does not begin with \"" + std::string(family) + "\"");
  if (found != kMagic) return unsupported("it is a trace of another version than 1");

  const std::optional<uint64_t> length = cursor.varint();
  if (!length) return malformed("it ends within its header");
  const Block block = take_block(cursor, *length);
  if (!block.whole) return malformed("it ends within its header");
  if (!block.intact) return malformed("its header is damaged: the checksum differs");
  Result<Header> header = decode_header(block.payload);
  if (!header.ok()) return header.status();
  return TraceReader(cursor, *std::move(header));
}

TraceReader::TraceReader(Cursor cursor, Header header) : cursor_(cursor), header_(std::move(header)) {
  for (const auto& layer : header_.layers) layer_pieces_.push_back(piece_count(layer));
}

Result<bool> TraceReader::next_token(cache::Steps& steps) {
  if (complete_) return false;
  const std::string where = "token " + std::to_string(tokens_) + " at byte " + std::to_string(cursor_.offset());
  const std::optional<uint64_t> length = cursor_.varint();
  if (!length) return false;
  if (*length == 0) {
    const std::optional<uint64_t> tokens = cursor_.varint();
    if (!tokens) return false;
    if (*tokens != tokens_ || cursor_.left() != 0)
      return malformed("it is damaged: its end, in the place of " + where +
                       ", does not fit what precedes or follows it");
    complete_ = true;
    return false;
  }
  const Block block = take_block(cursor_, *length);
  if (!block.whole) {
    cursor_ = Cursor({});
    return false;
  }
  if (!block.intact) return malformed("it is damaged: the checksum of " + where + " differs");
  Cursor payload(block.payload);
  uint32_t first = 0;
  for (const uint32_t pieces : layer_pieces_) {
    if (!decode_layer(payload, first, pieces, steps)) return malformed(where + " is no set of pieces for each layer");
    first += pieces;
  }
  if (payload.left() != 0) return malformed(where + " has bytes after its last layer");
  ++tokens_;
  return true;
}

bool TraceReader::decode_layer(Cursor& cursor, uint32_t first, uint32_t pieces, cache::Steps& steps) {
  const std::optional<uint64_t> form = cursor.varint();
  if (!form) return false;
  if (*form == 1) {
    const auto bitmap = cursor.take(ceil_div(pieces, 8));
    if (!bitmap) return false;
    for (uint32_t piece = 0; piece < bitmap->size() * 8; ++piece) {
      if ((std::to_integer<uint32_t>((*bitmap)[piece / 8]) >> (piece % 8) & 1) == 0) continue;
      if (piece >= pieces) return false;
      steps.add(first + piece);
    }
  } else if (*form % 2 == 0) {
    uint32_t at = 0;
    for (uint64_t run = 0; run < *form / 2; ++run) {
      const std::optional<uint64_t> gap = cursor.varint_up_to(pieces - at);
      if (!gap || *gap == pieces - at || (run > 0 && *gap == 0)) return false;
      at += static_cast<uint32_t>(*gap);
      const std::optional<uint64_t> length_less_one = cursor.varint_up_to(pieces - at - 1);
      if (!length_less_one) return false;
      const uint32_t end = at + static_cast<uint32_t>(*length_less_one) + 1;
      for (; at < end; ++at) steps.add(first + at);
    }
  } else {
    return false;
  }
  steps.end_step();
  return true;
}

Result<Trace> read_trace(const std::string& path, uint64_t max_demands) {
  const std::string context = "cannot read the trace " + path;
  const Result<File> file = File::open(path);
  if (!file.ok()) return file.status();
  if (file->size_bytes() == 0) return malformed(context + ": it is empty");
  const Result<MappedMemory> memory = MappedMemory::allocate(file->size_bytes());
  if (!memory.ok()) return memory.status();
  const std::span<std::byte> bytes(memory->data(), file->size_bytes());
  if (Status status = file->read_at(0, bytes); !status.ok()) return status;

  Result<TraceReader> reader = TraceReader::open(bytes);
  if (!reader.ok()) return reader.status().with_context(context);
  Trace trace;
  for (;;) {
    const Result<bool> more = reader->next_token(trace.steps);
    if (!more.ok()) return more.status().with_context(context);
    if (!*more) break;
    if (trace.steps.all().size() > max_demands || trace.steps.count() > kMaxSteps)
      return unsupported(context + ": it demands more than " + std::to_string(max_demands) +
                         " pieces, the most that are held in memory");
  }
  trace.header = reader->header();
  trace.tokens = reader->tokens();
  trace.complete = reader->complete();
  return trace;
}

}  // namespace leanstream::trace
