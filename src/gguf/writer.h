#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "gguf/reader.h"
#include "kernels/abi/weight_type.h"

namespace leanstream::gguf {

// Writes a GGUF v3 file. Usage: set() every key, add_tensor() every tensor, then begin(), then write_tensor() in the
// order added, then commit(). Nothing appears under the final name before commit(). Single-thread.
class Writer {
 public:
  explicit Writer(uint64_t alignment = 32);

  // A key set twice keeps its place and takes the new value.
  void set(const std::string& key, Value value);
  void set_string(const std::string& key, std::string value);
  void set_uint32(const std::string& key, uint32_t value);
  void set_float32(const std::string& key, float value);
  void set_bool(const std::string& key, bool value);
  void set_strings(const std::string& key, std::vector<std::string> values);
  void set_floats(const std::string& key, const std::vector<float>& values);  // array of kFloat32
  void set_int32s(const std::string& key, const std::vector<int32_t>& values);

  void add_tensor(const std::string& name, WeightType type, std::vector<uint64_t> dims);

  Status begin(const std::string& path);                  // writes the head
  Status write_tensor(std::span<const std::byte> bytes);  // may come in parts; parts of one tensor add up
  Status commit();                                        // refuses when a tensor is incomplete

  uint64_t file_bytes() const;  // the finished file's size, known before begin()

 private:
  struct Tensor {
    std::string name;
    WeightType type;
    std::vector<uint64_t> dims;
    uint64_t size_bytes;
    uint64_t offset;
  };
  uint64_t alignment_;
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<AtomicFileWriter> file_;
  size_t current_ = 0;          // tensor being written
  uint64_t current_bytes_ = 0;  // of it, written so far
};

}  // namespace leanstream::gguf
