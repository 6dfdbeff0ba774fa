#include "runtime/neurons.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>

#include "base/checked.h"
#include "model/weights.h"

namespace leanstream::runtime {
namespace {

constexpr uint64_t kStagingBytes = 256 << 10;

// The file's MLP matrices of one layer.
struct MlpTensors {
  const gguf::TensorInfo* gate = nullptr;
  const gguf::TensorInfo* up = nullptr;
  const gguf::TensorInfo* down = nullptr;
};

Result<std::vector<MlpTensors>> mlp_tensors(const gguf::Model& file, const model::Config& config) {
  model::Weights weights;
  const std::vector<model::WeightSlot> slots = model::weight_slots(config, weights);
  std::vector<MlpTensors> layers(config.n_layers);
  for (const model::WeightSlot& slot : slots) {
    for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
      const model::LayerWeights& w = weights.layers[layer];
      const gguf::TensorInfo** place = slot.matrix == &w.gate   ? &layers[layer].gate
                                       : slot.matrix == &w.up   ? &layers[layer].up
                                       : slot.matrix == &w.down ? &layers[layer].down
                                                                : nullptr;
      if (slot.matrix == nullptr || place == nullptr) continue;
      *place = file.find_tensor(slot.tensor);
      if (*place == nullptr)
        return unsupported("cannot tell the neurons of " + file.path() + " apart: it has no tensor '" + slot.tensor +
                           "'");
    }
  }
  return layers;
}

// Adds the squares of a down matrix's elements to the sums of their columns. sums: [d_ff].
Status add_squares(const gguf::Model& file, const gguf::TensorInfo& tensor, const kernels::Kernels& kernels,
                   std::span<double> sums) {
  const WeightType type = find_weight_type(tensor.type_id)->type;
  const auto cols = static_cast<uint32_t>(tensor.dims[0]);
  const uint64_t rows = tensor.element_count() / cols;
  const uint64_t stride = row_bytes(type, cols);
  const uint64_t step = std::max<uint64_t>(1, kStagingBytes / stride);
  std::vector<std::byte> staging(step * stride);
  std::vector<float> row(cols);
  for (uint64_t begin = 0; begin < rows; begin += step) {
    const auto count = static_cast<uint32_t>(std::min(step, rows - begin));
    if (Status status = file.read_tensor(tensor, begin * stride, std::span(staging).first(count * stride));
        !status.ok())
      return status;
    const Matrix matrix{type, Layout::kFile, count, cols, staging.data()};
    for (uint32_t r = 0; r < count; ++r) {
      kernels.dequantize_row(matrix, r, 1.0f, row.data());
      for (uint32_t c = 0; c < cols; ++c) sums[c] += double{row[c]} * row[c];
    }
  }
  return {};
}

}  // namespace

Result<std::vector<uint32_t>> neuron_bytes(const gguf::Model& file, const model::Config& config) {
  const Result<std::vector<MlpTensors>> layers = mlp_tensors(file, config);
  if (!layers.ok()) return layers.status();
  std::vector<uint32_t> bytes;
  for (const MlpTensors& layer : *layers)
    bytes.push_back(static_cast<uint32_t>(
        ceil_div(layer.gate->size_bytes + layer.up->size_bytes + layer.down->size_bytes, config.d_ff)));
  return bytes;
}

Result<std::vector<float>> down_norms(const gguf::Model& file, const model::Config& config,
                                      const kernels::Kernels& kernels, engine::WorkerTeam& team) {
  const Result<std::vector<MlpTensors>> layers = mlp_tensors(file, config);
  if (!layers.ok()) return layers.status();
  std::vector<float> norms(size_t{config.n_layers} * config.d_ff);
  Status failure;
  std::mutex failure_mutex;
  team.run([&](engine::Worker& worker) {
    std::vector<double> sums(config.d_ff);
    worker.for_each_chunk(config.n_layers, 1, [&](uint32_t layer, uint32_t) {
      std::fill(sums.begin(), sums.end(), 0.0);
      if (Status status = add_squares(file, *(*layers)[layer].down, kernels, sums); !status.ok()) {
        const std::lock_guard lock(failure_mutex);
        failure = std::move(status);
      }
      for (uint32_t j = 0; j < config.d_ff; ++j)
        norms[size_t{layer} * config.d_ff + j] = static_cast<float>(std::sqrt(sums[j]));
    });
  });
  if (!failure.ok()) return failure;
  return norms;
}

void mark_most_important(std::span<const float> hidden, std::span<const float> norms, uint32_t count,
                         std::span<uint64_t> keys, std::span<uint64_t> bitmap) {
  // Largest first: the bits of a float that is not negative order as it does; below them, the number from the top down.
  const auto n = static_cast<uint32_t>(hidden.size());
  for (uint32_t j = 0; j < n; ++j) {
    const float importance = std::fabs(hidden[j]) * norms[j];
    keys[j] = importance > 0 ? uint64_t{std::bit_cast<uint32_t>(importance)} << 32 | (UINT32_MAX - j) : 0;
  }
  std::fill(bitmap.begin(), bitmap.end(), 0);
  count = std::min(count, n);
  std::nth_element(keys.begin(), keys.begin() + count, keys.begin() + n, std::greater<>());
  for (uint32_t i = 0; i < count; ++i) {
    if (keys[i] == 0) continue;
    const uint32_t j = UINT32_MAX - static_cast<uint32_t>(keys[i]);
    bitmap[j / 64] |= uint64_t{1} << (j % 64);
  }
}

}  // namespace leanstream::runtime
