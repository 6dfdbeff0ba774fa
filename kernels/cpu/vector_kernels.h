#pragma once

#include "kernels/cpu/kernels.h"

namespace leanstream::kernels {

// The vector half of a Kernels table: same names, same contracts. kernels.h documents them.
struct VectorKernels {
  decltype(Kernels::rms_norm) rms_norm;
  decltype(Kernels::add) add;
  decltype(Kernels::glu) glu;
  decltype(Kernels::rope) rope;
  decltype(Kernels::store_kv) store_kv;
  decltype(Kernels::attention) attention;
  decltype(Kernels::argmax) argmax;
  decltype(Kernels::log_sum_exp) log_sum_exp;
  decltype(Kernels::sum_words) sum_words;
};

// The most that a table of vector kernels may use of an x86 CPU. Other architectures have one level.
enum class VectorLevel : uint8_t { kSse4, kAvx2, kBest };

// The functions compiled for the best Highway target within `level` that this CPU runs. Each target gives its own bits
// (lane counts differ, and so does the order of sums); one target always gives the same.
const VectorKernels& vector_kernels(VectorLevel level = VectorLevel::kBest);

}  // namespace leanstream::kernels
