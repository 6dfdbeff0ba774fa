#include <string_view>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/targets.h"

namespace leanstream::kernels {
namespace {

Kernels make_table(const Target& target) {
  const MatrixKernels& matrix = target.matrix();
  Kernels table{};
  table.name = target.name;
  table.pack_panel = matrix.pack_panel;
  table.matmul = matrix.matmul;
  table.dequantize_row = matrix.dequantize_row;
  table.quantize = matrix.quantize;
  const VectorKernels& vector = vector_kernels(target.vector_level);
  table.rms_norm = vector.rms_norm;
  table.add = vector.add;
  table.glu = vector.glu;
  table.rope = vector.rope;
  table.store_kv = vector.store_kv;
  table.attention = vector.attention;
  table.argmax = vector.argmax;
  table.log_sum_exp = vector.log_sum_exp;
  table.sum_words = vector.sum_words;
  return table;
}

// The tables that this CPU runs, and pointers to them: made on first use, immutable from then on.
struct Tables {
  std::vector<Kernels> tables;
  std::vector<const Kernels*> pointers;

  Tables() {
    for (const Target& target : targets())
      if (target.runs_here()) tables.push_back(make_table(target));
    for (const Kernels& table : tables) pointers.push_back(&table);
  }
};

}  // namespace

std::span<const Kernels* const> all_kernels() {
  static const Tables tables;
  return tables.pointers;
}

const Kernels* select_kernels(const char* max_level) {
  if (max_level == nullptr) return all_kernels().front();
  for (const Kernels* kernels : all_kernels())
    if (std::string_view(kernels->name) == max_level) return kernels;
  return nullptr;
}

}  // namespace leanstream::kernels
