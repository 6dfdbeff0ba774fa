#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/piece.h"

namespace leanstream::cache {

// Doubly linked lists of pieces, oldest first; a piece is in one list at most. Operations are O(1), a search apart. All
// memory is taken at construction: 8 bytes a piece. Single-thread.
class PieceLists {
 public:
  PieceLists(uint32_t n_pieces, uint32_t n_lists);

  bool linked(Piece piece) const { return links_[piece].next != kNone; }
  bool empty(uint32_t list) const { return links_[end_of(list)].next == end_of(list); }
  Piece oldest(uint32_t list) const { return or_none(links_[end_of(list)].next); }  // kNone where empty

  // The oldest piece of which `wanted` holds; kNone where there is none.
  template <typename Predicate>
  Piece oldest(uint32_t list, Predicate&& wanted) const {
    Piece piece = oldest(list);
    while (piece != kNone && !wanted(piece)) piece = or_none(links_[piece].next);
    return piece;
  }

  // As the newest.
  void append(uint32_t list, Piece piece) {
    const uint32_t end = end_of(list);
    const uint32_t newest = links_[end].previous;
    links_[piece] = {newest, end};
    links_[newest].next = piece;
    links_[end].previous = piece;
  }

  void remove(Piece piece) {
    const Link link = links_[piece];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
    links_[piece] = {kNone, kNone};
  }

  // All of `from`, in their order, become the oldest of `to`.
  void move_all_to_oldest(uint32_t from, uint32_t to);

 private:
  // A list is a ring through its end, which is an element after those of the pieces.
  struct Link {
    uint32_t previous, next;  // kNone: in no list
  };
  uint32_t end_of(uint32_t list) const { return n_pieces_ + list; }
  Piece or_none(uint32_t element) const { return element < n_pieces_ ? element : kNone; }

  const uint32_t n_pieces_;
  std::vector<Link> links_;  // [n_pieces + n_lists]
};

}  // namespace leanstream::cache
