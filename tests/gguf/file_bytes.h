#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "gguf/reader.h"

namespace leanstream::gguf {

// A GGUF file written byte by byte, so that a test can write what a Writer never would.
class FileBytes {
 public:
  FileBytes() = default;
  // Magic, version and counts.
  FileBytes(uint64_t n_tensors, uint64_t n_metadata, uint32_t version = 3) {
    raw("GGUF").number(version).number(n_tensors).number(n_metadata);
  }

  FileBytes& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  template <typename T>
  FileBytes& number(T value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  FileBytes& string(std::string_view s) { return number<uint64_t>(s.size()).raw(s); }

  // A key and its value's type; the value follows.
  FileBytes& key(std::string_view name, ValueType type) { return string(name).number(type); }
  template <typename T>
  FileBytes& key(std::string_view name, ValueType type, T value) {
    return key(name, type).number(value);
  }
  // An array's element type and length; the elements follow.
  FileBytes& array(ValueType type, uint64_t count) { return number(type).number(count); }

  FileBytes& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type_id, uint64_t offset) {
    string(name).number(static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) number(dim);
    return number(type_id).number(offset);
  }
  FileBytes& pad(uint64_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  FileBytes& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  FileBytes& cut(size_t size) {
    bytes_.resize(size);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

  // Each test has files of its own: tests may run at the same time.
  static std::string path(const std::string& name) {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const std::string folder = testing::TempDir() + "leanstream-gguf-" + test.test_suite_name() + "." + test.name();
    std::filesystem::create_directories(folder);
    return folder + "/" + name;
  }
  std::string save(const std::string& name = "file.gguf") const {
    std::ofstream(path(name), std::ios::binary) << bytes_;
    return path(name);
  }
  Result<Model> open() const { return Model::open(save()); }

 private:
  std::string bytes_;
};

}  // namespace leanstream::gguf
