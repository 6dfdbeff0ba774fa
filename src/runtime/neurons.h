#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/worker_team.h"
#include "gguf/reader.h"
#include "kernels/cpu/kernels.h"
#include "model/config.h"

namespace leanstream::runtime {

// Neuron j of a layer: row j of its gate and up matrices, column j of its down matrix.

// Bytes of a neuron of each layer, as the file stores it (of a column: its share of the matrix). [n_layers]. Errors:
// kUnsupported for a file that has no such matrices, naming the tensor.
Result<std::vector<uint32_t>> neuron_bytes(const gguf::Model& file, const model::Config& config);

// ||W_down[:, j]||, the length of every neuron's down column. [n_layers, d_ff]. Reads the down matrices from the file,
// all workers at once. Errors: kIo; as above.
Result<std::vector<float>> down_norms(const gguf::Model& file, const model::Config& config,
                                      const kernels::Kernels& kernels, engine::WorkerTeam& team);

// Marks the `count` neurons of largest importance |hidden[j]| * norms[j]: exactly so many, ties by lower number, except
// that a neuron of no importance (zero, or NaN) is never marked. hidden, norms: [n]; keys: [n], scratch; bitmap:
// ceil(n / 64) words, bit j % 64 of word j / 64.
void mark_most_important(std::span<const float> hidden, std::span<const float> norms, uint32_t count,
                         std::span<uint64_t> keys, std::span<uint64_t> bitmap);

}  // namespace leanstream::runtime
