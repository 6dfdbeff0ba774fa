#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/piece.h"
#include "cache/policy.h"
#include "cache/residency.h"

namespace leanstream::cache {

// The slots of an arena, and what is in them. Owns its policy; knows nothing of bytes: who holds a slot's memory, and
// whether a piece's bytes have arrived in it, is the owner's business. A piece that is held is never given up, so its
// slot may be read, or read into, without a lock. No allocation after construction. Single-thread.
//
//   Cache::Demand demand = cache.demand(pieces, slots);
//   for (Piece piece : demand.missing) cache.insert(piece, demand.step);  // a slot to read it into
//   ... compute ...
//   cache.retire(demand.step);
class Cache {
 public:
  Cache(uint32_t n_pieces, uint32_t n_slots, std::unique_ptr<Policy> policy);

  struct Demand {
    Step step = 0;
    std::span<const Piece> missing;  // the pieces without a slot, ascending; valid until the next demand()
  };
  // Begins a step that needs all of `pieces` (ascending, each once) at once. slots[i] becomes the slot of pieces[i], or
  // kNone where it has none. Those that have one are held until the step is retired.
  Demand demand(std::span<const Piece> pieces, std::span<Slot> slots);

  struct Insertion {
    Slot slot = kNone;      // kNone: the piece stays out
    Piece evicted = kNone;  // what was in the slot before
  };
  // A slot for a piece that has none, held until `held_until` is retired; a step that has not begun may be named, for
  // pieces that are read ahead. kNone where every slot is held, or kept by a static policy.
  Insertion insert(Piece piece, Step held_until);
  // The same where the policy finds the piece worth a slot: for pieces whose bytes are elsewhere already.
  Insertion offer(Piece piece, Step held_until);

  // This step and all before it are over: what only they held may be given up.
  void retire(Step step) { residency_.retire(step); }

  // Of resident pieces. evict: frees the slot, even a held one. A pinned piece stays until unpin() or evict().
  void evict(Piece piece);
  void pin(Piece piece);
  void unpin(Piece piece);

  const Residency& residency() const { return residency_; }
  Step last_step() const { return last_step_; }

 private:
  Insertion place(Piece piece, Piece victim, Step held_until);

  Residency residency_;
  std::vector<Piece> step_;  // [n_pieces] room for a step: what it found, then what it missed
  const std::unique_ptr<Policy> policy_;
  Step last_step_ = 0;
};

}  // namespace leanstream::cache
