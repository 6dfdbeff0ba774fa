#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/piece.h"

namespace leanstream::cache {

// The sets of pieces that a run demanded, one after another: a step is one layer of one token. Within a step pieces
// ascend and none comes twice.
class Steps {
 public:
  void reserve(size_t steps, size_t pieces) {
    ends_.reserve(steps);
    pieces_.reserve(pieces);
  }
  // Adds a piece to the step that the next end_step() closes. A step may be empty.
  void add(Piece piece) { pieces_.push_back(piece); }
  void end_step() { ends_.push_back(pieces_.size()); }

  size_t count() const { return ends_.size(); }
  std::span<const Piece> step(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {pieces_.data() + begin, ends_[i] - begin};
  }
  std::span<const Piece> all() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
  std::vector<size_t> ends_;
};

// The `count` pieces of [0, n_pieces) that most steps demanded, most demanded first; ties by lower number.
std::vector<Piece> most_demanded(const Steps& steps, uint32_t n_pieces, uint32_t count);

}  // namespace leanstream::cache
