#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/policy.h"
#include "cache/steps.h"

namespace leanstream::cache {

// Pieces are numbered [0, n_pieces). Costs are per demanded, inserted or evicted piece.

// Keeps the pieces of `set` and admits no others: a choice made beforehand, by layer order or by most_demanded(). O(1).
std::unique_ptr<Policy> static_policy(uint32_t n_pieces, std::span<const Piece> set);

// Gives up the piece that was demanded or inserted longest ago. O(1).
std::unique_ptr<Policy> lru_policy(uint32_t n_pieces);

// Gives up the piece with the least decayed count of demands: a demand adds 1, and counts halve every `half_life_steps`
// steps, at least 1. Counts of pieces that are not resident go on, and a piece is admitted only where its count is
// clearly more than the victim's: so a cyclic order leaves a fixed part resident. O(1): counts are compared by their
// logarithm, in eighths; equal ones go oldest first.
std::unique_ptr<Policy> decayed_lfu_policy(uint32_t n_pieces, uint32_t half_life_steps);

// ARC (Megiddo and Modha, FAST 2003) for a cache of n_slots: pieces demanded once and more than once apart, the share
// of each adapted by demands for pieces that were lately given up. O(1).
std::unique_ptr<Policy> arc_policy(uint32_t n_pieces, uint32_t n_slots);

// Belady's offline optimum for one recorded run: gives up the piece whose next demand lies furthest ahead, and admits a
// piece only where its own comes sooner. The cache must be shown exactly the steps of `steps`, from the first; nothing
// of it is borrowed. O(log n_slots), and O(n_slots) where the furthest piece is held. simulate.h says when it is a
// bound.
std::unique_ptr<Policy> belady_policy(uint32_t n_pieces, uint32_t n_slots, const Steps& steps);

}  // namespace leanstream::cache
