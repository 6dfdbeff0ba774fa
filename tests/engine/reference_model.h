#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gguf/reader.h"
#include "model/config.h"

namespace leanstream::test {

// A forward pass written to be read: one position after the other, weights as floats, sums in double, keys and values
// kept as floats. The oracle of the decoder; shares with it the config and nothing else. No YaRN (see rope_test).
class ReferenceModel {
 public:
  // Reads and dequantises all tensors. Aborts on an error.
  ReferenceModel(const gguf::Model& file, const model::Config& config);

  // Logits [n_vocab] of every position of a sequence.
  std::vector<std::vector<float>> logits(const std::vector<int32_t>& tokens) const;

 private:
  using Vector = std::vector<float>;
  struct Cache {
    std::vector<Vector> keys, values;  // [position] of [n_kv_heads * head_dim]
  };

  const Vector* find(const std::string& name) const;
  const Vector& tensor(const std::string& name) const;
  Vector multiply(const std::string& matrix, const Vector& x) const;  // plus "<matrix less .weight>.bias" if present
  Vector norm(const std::string& weight, const Vector& x) const;      // x itself when there is no such tensor

  Vector attention(uint32_t layer, const Vector& x, uint32_t position, Cache& cache) const;
  Vector feed_forward(uint32_t layer, const Vector& x) const;
  void norm_and_rotate(uint32_t layer, const std::string& norm_name, uint32_t position, Vector& heads) const;

  const model::Config config_;
  std::map<std::string, Vector> tensors_;
};

}  // namespace leanstream::test
