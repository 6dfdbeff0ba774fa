#include "trace/exact_trace.h"

namespace leanstream::trace {

Trace exact_trace(Header header, uint64_t tokens) {
  Trace trace;
  trace.steps.reserve(tokens * header.layers.size(), tokens * piece_count(header));
  for (uint64_t token = 0; token < tokens; ++token) {
    cache::Piece piece = 0;
    for (const auto& layer : header.layers) {
      for (uint32_t left = piece_count(layer); left > 0; --left) trace.steps.add(piece++);
      trace.steps.end_step();
    }
  }
  trace.header = std::move(header);
  trace.tokens = tokens;
  return trace;
}

}  // namespace leanstream::trace
