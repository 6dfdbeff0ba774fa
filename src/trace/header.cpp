#include "trace/header.h"

#include "trace/block.h"

namespace leanstream::trace {
namespace {

void append_text(std::string& out, const std::string& text) {
  append_varint(out, text.size());
  out += text;
}

Status bad_header(const std::string& why) {
  return malformed("its header " + why);
}

Result<std::string> decode_text(Cursor& cursor, const char* what) {
  const std::optional<uint64_t> length = cursor.varint_up_to(kMaxTextBytes);
  const auto bytes = length ? cursor.take(*length) : std::nullopt;
  if (!bytes) return bad_header(std::string("holds no ") + what);
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// Counts as it goes, so that no more is stored than the bytes there are can name.
Result<std::vector<SizeRun>> decode_layer(Cursor& cursor, uint32_t& pieces_left) {
  std::vector<SizeRun> layer;
  const std::optional<uint64_t> pieces = cursor.varint_up_to(pieces_left);
  if (!pieces) return bad_header("has a layer without a count of pieces, or more than 2^26 pieces in all");
  pieces_left -= static_cast<uint32_t>(*pieces);
  for (uint64_t left = *pieces; left > 0;) {
    const std::optional<uint64_t> count = cursor.varint_up_to(left);
    const std::optional<uint64_t> bytes = cursor.varint_up_to(UINT32_MAX);
    if (!count || *count == 0 || !bytes || *bytes == 0) return bad_header("does not give the size of every piece");
    layer.push_back({static_cast<uint32_t>(*count), static_cast<uint32_t>(*bytes)});
    left -= *count;
  }
  return layer;
}

}  // namespace

uint32_t piece_count(std::span<const SizeRun> layer) {
  uint32_t count = 0;
  for (const SizeRun& run : layer) count += run.count;
  return count;
}

uint32_t piece_count(const Header& header) {
  uint32_t count = 0;
  for (const auto& layer : header.layers) count += piece_count(layer);
  return count;
}

std::vector<uint32_t> piece_bytes(const Header& header) {
  std::vector<uint32_t> bytes;
  bytes.reserve(piece_count(header));
  for (const auto& layer : header.layers)
    for (const SizeRun& run : layer) bytes.insert(bytes.end(), run.count, run.bytes);
  return bytes;
}

uint64_t total_bytes(const Header& header) {
  uint64_t bytes = 0;
  for (const auto& layer : header.layers)
    for (const SizeRun& run : layer) bytes += uint64_t{run.count} * run.bytes;
  return bytes;
}

Status check(const Header& header) {
  for (const std::string* text : {&header.model, &header.pieces, &header.selection})
    if (text->size() > kMaxTextBytes)
      return invalid_argument("a text of a trace's header has " + std::to_string(text->size()) +
                              " bytes, the most is " + std::to_string(kMaxTextBytes));
  if (header.layers.empty() || header.layers.size() > kMaxLayers)
    return invalid_argument("a trace has 1 to " + std::to_string(kMaxLayers) + " layers, not " +
                            std::to_string(header.layers.size()));
  uint64_t pieces = 0;
  for (const auto& layer : header.layers) {
    for (const SizeRun& run : layer) {
      if (run.count == 0 || run.bytes == 0) return invalid_argument("a trace has no runs of no pieces, or of no bytes");
      pieces += run.count;
    }
  }
  if (pieces > kMaxPieces)
    return invalid_argument("a trace has at most " + std::to_string(kMaxPieces) + " pieces, not " +
                            std::to_string(pieces));
  return {};
}

std::string encode(const Header& header) {
  std::string out;
  for (const std::string* text : {&header.model, &header.pieces, &header.selection}) append_text(out, *text);
  append_varint(out, header.layers.size());
  for (const auto& layer : header.layers) {
    append_varint(out, piece_count(layer));
    for (const SizeRun& run : layer) {
      append_varint(out, run.count);
      append_varint(out, run.bytes);
    }
  }
  return out;
}

Result<Header> decode_header(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  Header header;
  struct Field {
    std::string& text;
    const char* what;
  };
  for (const Field& field : {Field{header.model, "model name"}, Field{header.pieces, "name of the pieces"},
                             Field{header.selection, "name of the selection"}}) {
    Result<std::string> text = decode_text(cursor, field.what);
    if (!text.ok()) return text.status();
    field.text = *std::move(text);
  }
  const std::optional<uint64_t> n_layers = cursor.varint_up_to(kMaxLayers);
  if (!n_layers || *n_layers == 0) return bad_header("has no count of layers, or one out of range");
  uint32_t pieces_left = kMaxPieces;
  for (uint64_t i = 0; i < *n_layers; ++i) {
    Result<std::vector<SizeRun>> layer = decode_layer(cursor, pieces_left);
    if (!layer.ok()) return layer.status();
    header.layers.push_back(*std::move(layer));
  }
  if (cursor.left() != 0) return bad_header("has bytes after its end");
  return header;
}

}  // namespace leanstream::trace
