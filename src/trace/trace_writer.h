#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "trace/header.h"

namespace leanstream::trace {

// Writes a trace, token by token, with memory that does not grow. The file appears under its name with commit(); until
// then, and after a crash, what has been written is beside it, in "<path>.tmp-<pid>", and readable up to where it ends.
// The first failure stays: every later call returns it. Single-thread.
class TraceWriter {
 public:
  // Errors: kInvalidArgument (check(header)), kIo, kNotFound.
  static Result<TraceWriter> create(const std::string& path, const Header& header);
  // An upper estimate of what a writer holds.
  static uint64_t bytes_for(const Header& header);

  // The set of the next layer of the token under way: bit i of `bitmap` (word i / 64, bit i % 64) is piece i of the
  // layer. Bits past its last piece are 0.
  void add_layer(std::span<const uint64_t> bitmap);
  void add_whole_layer();

  // After as many layers as the header has.
  Status end_token();
  Status commit();

  uint64_t tokens() const { return tokens_; }

 private:
  TraceWriter(AtomicFileWriter file, const Header& header);

  void append_run(uint32_t begin, uint32_t end, uint32_t previous_end);
  Status write_block(std::span<const std::byte> payload);
  Status write(std::string_view bytes);

  AtomicFileWriter file_;
  std::vector<uint32_t> layer_pieces_;
  size_t layer_ = 0;     // of the token under way
  std::string payload_;  // of it
  std::string runs_;     // the layer's, before it is known whether they are shorter than its bitmap
  std::string frame_;
  uint64_t tokens_ = 0;
  Status failure_;
};

}  // namespace leanstream::trace
