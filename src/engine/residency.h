#pragma once

#include <vector>

#include "model/weights.h"

namespace leanstream::engine {

// Which weights are held in memory. A plain default holds everything.
struct Residency {
  // Of each of model::weight_slots(), in their order, the rows that are streamed; empty: none of any.
  std::vector<model::StreamedRows> streamed;
  // An embedding that is not also the output is not held: its rows are read as their tokens come.
  bool embedding_by_demand = false;
};

}  // namespace leanstream::engine
