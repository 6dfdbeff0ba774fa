#include "cache/residency.h"

#include <cassert>

namespace leanstream::cache {

Residency::Residency(uint32_t n_pieces, uint32_t n_slots) : slot_of_(n_pieces, kNone), slots_(n_slots) {
  free_.reserve(n_slots);
  for (Slot slot = n_slots; slot > 0; --slot) free_.push_back(slot - 1);  // the lowest goes first
}

Slot Residency::place(Piece piece, Step held_until) {
  assert(!resident(piece) && !full());
  const Slot slot = free_.back();
  free_.pop_back();
  slot_of_[piece] = slot;
  slots_[slot] = {held_until, piece};
  return slot;
}

Slot Residency::replace(Piece old, Piece piece, Step held_until) {
  assert(resident(old) && !held(old) && !resident(piece));
  const Slot slot = slot_of_[old];
  slot_of_[old] = kNone;
  slot_of_[piece] = slot;
  slots_[slot] = {held_until, piece};
  return slot;
}

void Residency::remove(Piece piece) {
  assert(resident(piece));
  const Slot slot = slot_of_[piece];
  slot_of_[piece] = kNone;
  slots_[slot] = {};
  free_.push_back(slot);
}

}  // namespace leanstream::cache
