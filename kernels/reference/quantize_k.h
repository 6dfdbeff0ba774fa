#pragma once

#include "kernels/reference/blocks.h"

namespace leanstream::reference {

// The best block that we find for x[0..256), all finite. `type` is a K-type.
Block fit_k_block(WeightType type, const float* x);

}  // namespace leanstream::reference
