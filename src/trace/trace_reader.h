#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/steps.h"
#include "trace/block.h"
#include "trace/header.h"

namespace leanstream::trace {

// A whole trace in memory. A step is a layer of a token; pieces are numbered as the header has them.
struct Trace {
  Header header;
  cache::Steps steps;  // tokens * layers of them
  uint64_t tokens = 0;
  bool complete = true;  // whether the file was written to its end
};

// Reads the tokens of a trace from untrusted bytes, which it borrows. Single-thread.
class TraceReader {
 public:
  // Errors: kMalformed, kUnsupported (a later version), each saying why.
  static Result<TraceReader> open(std::span<const std::byte> bytes);

  const Header& header() const { return header_; }

  // Adds the next token's steps. False where there is no further one: then complete() says whether the writer came to
  // its end, or the bytes merely stop, as after a crash. After an error `steps` holds nothing meaningful. Errors:
  // kMalformed.
  Result<bool> next_token(cache::Steps& steps);
  bool complete() const { return complete_; }
  uint64_t tokens() const { return tokens_; }

 private:
  TraceReader(Cursor cursor, Header header);

  bool decode_layer(Cursor& cursor, uint32_t first, uint32_t pieces, cache::Steps& steps);

  Cursor cursor_;
  Header header_;
  std::vector<uint32_t> layer_pieces_;
  uint64_t tokens_ = 0;
  bool complete_ = false;
};

// A trace holds at most so many demanded pieces in memory, of 4 bytes each.
inline constexpr uint64_t kMaxDemands = uint64_t{1} << 29;

// Errors: those of the reader and of File, with the path; kUnsupported above `max_demands`.
Result<Trace> read_trace(const std::string& path, uint64_t max_demands = kMaxDemands);

}  // namespace leanstream::trace
