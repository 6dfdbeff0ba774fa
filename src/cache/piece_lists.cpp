#include "cache/piece_lists.h"

namespace leanstream::cache {

PieceLists::PieceLists(uint32_t n_pieces, uint32_t n_lists)
    : n_pieces_(n_pieces), links_(size_t{n_pieces} + n_lists, Link{kNone, kNone}) {
  for (uint32_t list = 0; list < n_lists; ++list) links_[end_of(list)] = {end_of(list), end_of(list)};
}

void PieceLists::move_all_to_oldest(uint32_t from, uint32_t to) {
  if (empty(from)) return;
  const uint32_t from_end = end_of(from), to_end = end_of(to);
  const uint32_t first = links_[from_end].next, last = links_[from_end].previous;
  const uint32_t after = links_[to_end].next;
  links_[to_end].next = first;
  links_[first].previous = to_end;
  links_[last].next = after;
  links_[after].previous = last;
  links_[from_end] = {from_end, from_end};
}

}  // namespace leanstream::cache
