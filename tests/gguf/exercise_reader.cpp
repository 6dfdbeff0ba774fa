#include "tests/gguf/exercise_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <string>

#include "gguf/pack.h"
#include "gguf/reader.h"

namespace leanstream::gguf {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use_key(const Model& model, const std::string& key, const Value& value) {
  require(model.find(key) == &value);
  const Result<std::optional<uint64_t>> integer = model.find_unsigned(key);
  const Result<std::optional<double>> number = model.find_float(key);
  require(!integer.ok() || number.ok());
  const bool found = number.ok() || model.find_bool(key).ok() || model.find_string(key).ok();
  const auto* array = std::get_if<Array>(&value.value);
  require(found == (array == nullptr));
  if (array == nullptr) return;
  require(*model.find_array(key, array->type) == array);
  size_t bytes = 0;
  for (size_t i = 0; i < array->strings.size(); ++i) bytes += array->strings[i].size();
  require(bytes <= model.total_file_bytes());
}

void use_tensor(const Model& model, const TensorInfo& tensor) {
  require(model.find_tensor(tensor.name) == &tensor);
  require(tensor.size_bytes > 0 && tensor.element_count() > 0);
  std::byte byte;
  require(model.read_tensor(tensor, 0, {&byte, 1}).ok());
  require(model.read_tensor(tensor, tensor.size_bytes - 1, {&byte, 1}).ok());
  require(!model.read_tensor(tensor, tensor.size_bytes, {&byte, 1}).ok());
}

// Every tile of a pack lies within its tensor.
void use_pack(const Model& model) {
  const Result<std::optional<Pack>> pack = Pack::read(model);
  require(pack.ok() || !pack.status().message().empty());
  if (!pack.ok() || !*pack) return;
  for (const PackedLayer& layer : (*pack)->layers()) {
    const Tile last = layer.layout.tile(layer.layout.n_tiles() - 1);
    std::byte byte;
    require(model.read_tensor(*layer.tiles, last.offset + last.used_bytes - 1, {&byte, 1}).ok());
    require(read_checksums(model, layer).ok());
  }
}

}  // namespace

bool exercise_reader(std::span<const std::byte> bytes) {
  const int fd = ::memfd_create("model", MFD_CLOEXEC);
  require(fd >= 0);
  require(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const Result<Model> model = Model::open("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  if (!model.ok()) {
    require(!model.status().message().empty());
    return false;
  }
  require(std::has_single_bit((*model).alignment()));
  for (const auto& [key, value] : (*model).metadata()) use_key(*model, key, value);
  for (const TensorInfo& tensor : (*model).tensors()) use_tensor(*model, tensor);
  use_pack(*model);
  return true;
}

}  // namespace leanstream::gguf
