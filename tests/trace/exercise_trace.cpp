#include "exercise_trace.h"

#include <cstdlib>

#include "trace/trace_reader.h"

namespace leanstream::trace {
namespace {

void require(bool kept) {
  if (!kept) std::abort();
}

}  // namespace

std::string exercise_trace(std::span<const std::byte> bytes) {
  Result<TraceReader> reader = TraceReader::open(bytes);
  if (!reader.ok()) {
    require(!reader.status().message().empty());
    return reader.status().message();
  }
  const Header& header = reader->header();
  require(check(header).ok());
  require(piece_count(header) <= kMaxPieces);
  // A few bytes may name many pieces: only so many are asked for.
  constexpr size_t kEnough = 1 << 22;
  cache::Steps steps;
  for (uint64_t tokens = 0; steps.all().size() < kEnough; ++tokens) {
    const Result<bool> more = reader->next_token(steps);
    if (!more.ok()) return more.status().message();
    if (!*more) break;
    require(reader->tokens() == tokens + 1);
    require(steps.count() == (tokens + 1) * header.layers.size());
  }
  for (size_t i = 0; i < steps.count() && reader->complete(); ++i) {
    const size_t layer = i % header.layers.size();
    uint32_t first = 0;
    for (size_t before = 0; before < layer; ++before) first += piece_count(header.layers[before]);
    const uint32_t end = first + piece_count(header.layers[layer]);
    for (const cache::Piece piece : steps.step(i)) {
      require(piece >= first && piece < end);
      first = piece + 1;  // ascending
    }
  }
  return "";
}

}  // namespace leanstream::trace
