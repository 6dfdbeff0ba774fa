#include "random_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace leanstream::cache {

Steps random_steps(const StepsShape& shape, std::mt19937& random) {
  std::vector<Piece> names(shape.n_pieces);
  std::iota(names.begin(), names.end(), 0);
  std::shuffle(names.begin(), names.end(), random);
  std::vector<double> weights;
  for (uint32_t i = 0; i < shape.n_pieces; ++i) weights.push_back(std::pow(i + 1, -shape.skew));
  std::discrete_distribution<uint32_t> draw(weights.begin(), weights.end());
  Steps steps;
  for (size_t i = 0; i < shape.n_steps; ++i) {
    std::set<Piece> step;
    for (uint32_t n = 1 + random() % shape.most_per_step; n > 0; --n) step.insert(names[draw(random)]);
    for (const Piece piece : step) steps.add(piece);
    steps.end_step();
  }
  return steps;
}

Steps cyclic_steps(uint32_t n_pieces, uint32_t per_step, size_t rounds) {
  Steps steps;
  for (size_t round = 0; round < rounds; ++round)
    for (Piece piece = 0; piece < n_pieces; ++piece) {
      steps.add(piece);
      if ((piece + 1) % per_step == 0) steps.end_step();
    }
  return steps;
}

}  // namespace leanstream::cache
