#include "cache/cache.h"

#include <cassert>

namespace leanstream::cache {

Cache::Cache(uint32_t n_pieces, uint32_t n_slots, std::unique_ptr<Policy> policy)
    : residency_(n_pieces, n_slots), policy_(std::move(policy)) {}

Step Cache::demand(std::span<const Piece> pieces, std::span<Slot> slots) {
  assert(slots.size() >= pieces.size());
  ++last_step_;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Slot slot = residency_.slot_of(pieces[i]);
    if (slot != kNone) residency_.hold(slot, last_step_);
    slots[i] = slot;
  }
  policy_->demand(pieces);
  return last_step_;
}

Cache::Insertion Cache::insert(Piece piece, Step held_until) {
  Piece victim = kNone;
  if (residency_.full()) {
    victim = policy_->victim(piece, residency_);
    if (victim == kNone) return {};
  }
  return place(piece, victim, held_until);
}

Cache::Insertion Cache::offer(Piece piece, Step held_until) {
  Piece victim = kNone;
  if (residency_.full()) {
    victim = policy_->victim(piece, residency_);
    if (victim == kNone) return {};
  }
  if (!policy_->admits(piece, victim)) return {};
  return place(piece, victim, held_until);
}

Cache::Insertion Cache::place(Piece piece, Piece victim, Step held_until) {
  assert(!residency_.resident(piece));
  if (victim != kNone) {
    assert(!residency_.held(victim));
    policy_->evict(victim);
    residency_.remove(victim);
  }
  policy_->insert(piece);
  return {residency_.place(piece, held_until), victim};
}

void Cache::evict(Piece piece) {
  if (!residency_.pinned(piece)) policy_->remove(piece);
  residency_.remove(piece);
}

void Cache::pin(Piece piece) {
  if (residency_.pinned(piece)) return;
  policy_->remove(piece);
  residency_.pin(piece);
}

void Cache::unpin(Piece piece) {
  if (!residency_.pinned(piece)) return;
  residency_.unpin(piece, last_step_);
  policy_->insert(piece);
}

}  // namespace leanstream::cache
