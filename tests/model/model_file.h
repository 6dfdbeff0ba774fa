#pragma once

#include <map>
#include <string>
#include <vector>

#include "gguf/reader.h"
#include "gguf/writer.h"
#include "kernels/abi/weight_type.h"

namespace leanstream::test {

// The shape of a model made up for a test.
struct TinyShape {
  std::string architecture = "llama";
  uint32_t n_layers = 2, d_model = 64, d_ff = 96, n_vocab = 40;
  uint32_t n_heads = 4, n_kv_heads = 2, head_dim = 16;
  WeightType type = WeightType::kF32;  // of all matrices
  bool tied = false;
};

// A GGUF file with random weights, to be bent by a test before it is written: keys and tensors can be changed, added
// and dropped. The same content gives the same bytes.
class ModelFile {
 public:
  struct Tensor {
    WeightType type;
    std::vector<uint64_t> dims;  // fastest first
  };

  explicit ModelFile(const TinyShape& shape);

  // Keys are set by their names after "<architecture>.".
  ModelFile& set_number(const std::string& key, uint32_t value);
  ModelFile& set_float(const std::string& key, float value);
  ModelFile& set_text(const std::string& key, const std::string& value);
  ModelFile& set_numbers(const std::string& key, const std::vector<int32_t>& values);
  ModelFile& set(const std::string& full_key, gguf::Value value);
  ModelFile& drop_key(const std::string& key);

  ModelFile& set_tensor(const std::string& name, WeightType type, std::vector<uint64_t> dims);
  ModelFile& drop_tensor(const std::string& name);

  // Writes the file under the test's temporary folder and parses it. Fails the test on an error.
  gguf::Model open() const;
  std::string write(const std::string& path) const;

 private:
  std::string prefix_;
  std::map<std::string, gguf::Value> keys_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace leanstream::test
