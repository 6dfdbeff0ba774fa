#pragma once

#include <cstdint>
#include <vector>

#include "cache/piece.h"

namespace leanstream::cache {

// Steps are numbered from 1 in the order in which they begin.
using Step = uint64_t;

// Which piece is in which slot, and up to which step it must stay there. All memory is taken at construction.
// Single-thread.
class Residency {
 public:
  Residency(uint32_t n_pieces, uint32_t n_slots);

  uint32_t n_pieces() const { return static_cast<uint32_t>(slot_of_.size()); }
  uint32_t n_slots() const { return static_cast<uint32_t>(slots_.size()); }

  Slot slot_of(Piece piece) const { return slot_of_[piece]; }  // kNone: not resident
  bool resident(Piece piece) const { return slot_of_[piece] != kNone; }
  Piece piece_in(Slot slot) const { return slots_[slot].piece; }  // kNone: free
  bool full() const { return free_.empty(); }

  // A piece is held while a step that is not over needs it, or while it is pinned.
  bool held(Piece piece) const { return slots_[slot_of_[piece]].held_until >= first_live_step_; }
  bool pinned(Piece piece) const { return slots_[slot_of_[piece]].held_until == kForever; }

  // Of resident pieces.
  void hold(Piece piece, Step until) {
    Step& held_until = slots_[slot_of_[piece]].held_until;
    held_until = held_until < until ? until : held_until;
  }
  void pin(Piece piece) { slots_[slot_of_[piece]].held_until = kForever; }
  void unpin(Piece piece, Step until) { slots_[slot_of_[piece]].held_until = until; }

  // All steps up to this one are over.
  void retire(Step step) {
    if (first_live_step_ <= step) first_live_step_ = step + 1;
  }

  Slot place(Piece piece, Step held_until);               // not resident before; !full()
  Slot replace(Piece old, Piece piece, Step held_until);  // resident, not held; not resident
  void remove(Piece piece);                               // resident before

 private:
  static constexpr Step kForever = UINT64_MAX;
  struct Occupant {
    Step held_until = 0;
    Piece piece = kNone;
  };

  std::vector<Slot> slot_of_;  // [n_pieces]
  std::vector<Occupant> slots_;
  std::vector<Slot> free_;
  Step first_live_step_ = 1;
};

}  // namespace leanstream::cache
