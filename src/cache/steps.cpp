#include "cache/steps.h"

#include <algorithm>
#include <numeric>

namespace leanstream::cache {

std::vector<Piece> most_demanded(const Steps& steps, uint32_t n_pieces, uint32_t count) {
  std::vector<uint64_t> demands(n_pieces);
  for (const Piece piece : steps.all()) ++demands[piece];
  std::vector<Piece> pieces(n_pieces);
  std::iota(pieces.begin(), pieces.end(), 0);
  const auto last = pieces.begin() + std::min(count, n_pieces);
  std::partial_sort(pieces.begin(), last, pieces.end(),
                    [&](Piece a, Piece b) { return demands[a] != demands[b] ? demands[a] > demands[b] : a < b; });
  pieces.erase(last, pieces.end());
  return pieces;
}

}  // namespace leanstream::cache
