#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace leanstream::engine {

// Where weights come from that are not resident. Each pass over the model uses the pieces that model::StreamedRows
// number, every one of them once, in any order near theirs. Passes of several decoders take turns; within one, the
// workers of a team call acquire(), release() and read_embedding() at the same time.
class WeightStream {
 public:
  using StopFunction = bool (*)(void* user);

  virtual ~WeightStream() = default;

  // Begins a pass; waits for one under way. Errors: the stream's failure; kIo when a file has changed. After an error
  // there is no pass to end.
  virtual Status begin_pass() = 0;
  // complete: every piece was acquired and released. Errors: the stream's failure; kIo when a file has changed since
  // the pass began: its result is worth nothing then.
  virtual Status end_pass(bool complete) = 0;

  // The bytes of a piece: its rows, back to back as in the file. Waits until they are there; they stay until
  // release(piece). nullptr when `stop` (may be null) said so, or when the stream has failed: see status().
  virtual const std::byte* acquire(uint32_t piece, StopFunction stop, void* stop_user) = 0;
  virtual void release(uint32_t piece) = 0;

  // Memory in which a worker may rearrange a piece, as large as any is: two for each worker, its alone during a pass.
  virtual std::byte* workspace(uint32_t worker, uint32_t which) = 0;

  // Reads the embedding of a token, one row of the file, where the table is not resident. false: the stream has failed.
  virtual bool read_embedding(int32_t token, std::byte* row) = 0;

  // The first failure, which ends all passes.
  virtual Status status() const = 0;
};

}  // namespace leanstream::engine
