#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "gguf/tensor_type.h"
#include "gguf/value.h"
#include "kernels/abi/weight_type.h"

namespace leanstream::gguf {

// Writes a GGUF v3 file. Usage: set() every key, add_tensor() every tensor, then begin(), then write_tensor() in the
// order added, then commit(). Nothing appears under the final name before commit(), and nothing stays behind without
// it. Single-thread.
class Writer {
 public:
  explicit Writer(uint64_t alignment = 32);  // a power of two; kept in 'general.alignment' unless 32, the default

  // A key set twice keeps its place and takes the new value.
  void set(const std::string& key, Value value);
  void set_string(const std::string& key, std::string value);
  void set_uint32(const std::string& key, uint32_t value);
  void set_float32(const std::string& key, float value);
  void set_bool(const std::string& key, bool value);
  void set_strings(const std::string& key, StringList values);
  void set_floats(const std::string& key, const std::vector<float>& values);  // array of float32
  void set_int32s(const std::string& key, const std::vector<int32_t>& values);

  // dims as TensorInfo's: 1 to 4, fastest first; dims[0] is whole blocks of `type`.
  void add_tensor(const std::string& name, const TensorType& type, std::vector<uint64_t> dims);
  void add_tensor(const std::string& name, WeightType type, std::vector<uint64_t> dims);

  // kIo where the file system says that it lacks the room for the whole file.
  Status check_room(const std::string& path) const;
  // Creates the file and writes its head, if there is room.
  Status begin(const std::string& path);
  Status write_tensor(std::span<const std::byte> bytes);  // may come in parts, each of one tensor only
  Status commit();                                        // refuses when a tensor is incomplete

  uint64_t file_bytes() const;  // the finished file's size, known before begin()

 private:
  struct Tensor {
    std::string name;
    uint32_t type_id;
    std::vector<uint64_t> dims;
    uint64_t size_bytes;
    uint64_t offset;  // from the start of the tensors' bytes
  };

  std::string head() const;
  uint64_t data_bytes() const;

  uint64_t alignment_;
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<Tensor> tensors_;
  std::optional<AtomicFileWriter> file_;
  size_t current_ = 0;          // tensor being written
  uint64_t current_bytes_ = 0;  // of it, written so far
};

}  // namespace leanstream::gguf
