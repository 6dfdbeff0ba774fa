#pragma once

#include "kernels/cpu/kernels.h"

namespace leanstream::test {

// The kernels of `base`, but keys and values are kept and read as floats, for KvType::kF16 caches: what a decoder
// computes without the rounding of its cache. Attention is a plain loop in double. Good for one decoder at a time,
// which stores at most `rows` rows of at most `head_dim` elements until the next call.
kernels::Kernels with_float_cache(const kernels::Kernels& base, size_t rows, uint32_t head_dim);

}  // namespace leanstream::test
