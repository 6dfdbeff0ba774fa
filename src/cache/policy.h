#pragma once

#include <span>

#include "cache/piece.h"
#include "cache/residency.h"

namespace leanstream::cache {

// Decides which resident piece makes room for another. A policy keeps an order of its own over the resident pieces that
// are not pinned; the cache tells it of every change. All memory is taken at construction. Single-thread.
//
// A policy that predicts needs no more than this: it computes a key from what demand() shows it when a piece is
// inserted, and victim() returns the piece whose key lies furthest ahead.
class Policy {
 public:
  virtual ~Policy() = default;

  // A step demands these pieces: `hits` are resident, though pinned ones are not in the order; `misses` are not. Both
  // ascend. Comes before the step's inserts.
  virtual void demand(std::span<const Piece> hits, std::span<const Piece> misses) = 0;

  // The piece of the order to give up for `incoming`, not held; kNone where none may go. Changes nothing.
  virtual Piece victim(Piece incoming, const Residency& residency) = 0;

  // Whether `incoming` is worth the slot of `victim`, or a free one where that is kNone.
  virtual bool admits(Piece incoming, Piece victim) const { return true; }

  virtual void insert(Piece piece) = 0;               // into the order
  virtual void remove(Piece piece) = 0;               // out of it, by the owner's wish
  virtual void evict(Piece piece) { remove(piece); }  // out of it, for another piece: may be remembered
};

}  // namespace leanstream::cache
