#include "cache/cache.h"

#include <cassert>

namespace leanstream::cache {

Cache::Cache(uint32_t n_pieces, uint32_t n_slots, std::unique_ptr<Policy> policy)
    : residency_(n_pieces, n_slots), step_(n_pieces), policy_(std::move(policy)) {}

// Whether a piece is found is anybody's guess, the processor's too: two passes without a branch on it.
Cache::Demand Cache::demand(std::span<const Piece> pieces, std::span<Slot> slots) {
  assert(slots.size() >= pieces.size() && pieces.size() <= step_.size());
  size_t found = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    slots[i] = residency_.slot_of(pieces[i]);
    found += slots[i] != kNone;
  }
  size_t hit = 0, miss = found;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool resident = slots[i] != kNone;
    step_[resident ? hit : miss] = pieces[i];
    hit += resident;
    miss += !resident;
  }
  const std::span<const Piece> hits(step_.data(), found), misses(step_.data() + found, pieces.size() - found);
  ++last_step_;
  for (const Piece piece : hits) residency_.hold(piece, last_step_);
  policy_->demand(hits, misses);
  return {last_step_, misses};
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
  if (victim != kNone) policy_->evict(victim);
  policy_->insert(piece);
  return {victim == kNone ? residency_.place(piece, held_until) : residency_.replace(victim, piece, held_until),
          victim};
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
