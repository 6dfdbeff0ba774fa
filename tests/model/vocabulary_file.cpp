#include "tests/model/vocabulary_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "gguf/writer.h"

namespace leanstream::test {
namespace {

using gguf::Value;
using gguf::ValueType;

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "a test's vocabulary file: %s\n", status.message().c_str());
  std::abort();
}

gguf::StringList string_list(const std::vector<std::string>& strings) {
  gguf::StringList list;
  for (const std::string& s : strings) list.push_back(s);
  return list;
}

}  // namespace

std::string byte_letter(uint8_t byte) {
  const auto printable = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xFF && b != 0xAD); };
  uint32_t code_point = byte;
  if (!printable(byte)) {
    code_point = 0x100;
    for (int b = 0; b < byte; ++b) code_point += printable(b) ? 0 : 1;
  }
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

VocabularyFile VocabularyFile::spm() {
  VocabularyFile file;
  file.set_text("tokenizer.ggml.model", "llama");
  file.add("<unk>", 0, kUnknown);
  file.set_id("unknown", 0);
  file.set_id("bos", static_cast<uint32_t>(file.add("<s>", 0, kControl)));
  file.set_id("eos", static_cast<uint32_t>(file.add("</s>", 0, kControl)));
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    file.add(text, 0, kByte);
  }
  return file;
}

VocabularyFile VocabularyFile::bpe(const std::string& pre) {
  VocabularyFile file;
  file.set_text("tokenizer.ggml.model", "gpt2");
  file.set_text("tokenizer.ggml.pre", pre);
  for (int byte = 0; byte < 256; ++byte) file.add(byte_letter(static_cast<uint8_t>(byte)));
  return file;
}

model::Token VocabularyFile::add(const std::string& text, float score, int32_t type) {
  tokens.push_back(text);
  scores.push_back(score);
  types.push_back(type);
  return static_cast<model::Token>(tokens.size() - 1);
}

model::Token VocabularyFile::add_merge(const std::string& left, const std::string& right) {
  merges.push_back(left + " " + right);
  return add(left + right);
}

VocabularyFile& VocabularyFile::set(const std::string& key, Value value) {
  values_.emplace_back(key, std::move(value));
  return *this;
}

VocabularyFile& VocabularyFile::set_id(const std::string& name, uint32_t id) {
  return set("tokenizer.ggml." + name + "_token_id", Value{ValueType::kUint32, uint64_t{id}});
}

VocabularyFile& VocabularyFile::set_flag(const std::string& name, bool value) {
  return set("tokenizer.ggml." + name, Value{ValueType::kBool, uint64_t{value}});
}

VocabularyFile& VocabularyFile::set_text(const std::string& key, const std::string& value) {
  return set(key, Value{ValueType::kString, value});
}

gguf::Model VocabularyFile::open() const {
  std::vector<std::pair<std::string, Value>> keys;
  const auto add_array = [&](const std::string& name, gguf::Array array) {
    keys.emplace_back("tokenizer.ggml." + name, Value{ValueType::kArray, std::move(array)});
  };
  gguf::Array array;
  array.type = ValueType::kString;
  array.strings = string_list(tokens);
  add_array("tokens", std::move(array));
  array = {};
  array.type = ValueType::kInt32;
  array.signeds.assign(types.begin(), types.end());
  add_array("token_type", std::move(array));
  array = {};
  array.type = ValueType::kFloat32;
  array.floats.assign(scores.begin(), scores.end());
  add_array("scores", std::move(array));
  array = {};
  array.type = ValueType::kString;
  array.strings = string_list(merges);
  add_array("merges", std::move(array));
  keys.insert(keys.end(), values_.begin(), values_.end());

  gguf::Writer writer;
  for (const auto& [key, value] : keys) {
    if (std::find(dropped_.begin(), dropped_.end(), key) == dropped_.end()) writer.set(key, value);
  }
  const std::string path =
      std::filesystem::temp_directory_path() / ("leanstream-vocabulary-" + std::to_string(getpid()) + ".gguf");
  if (Status status = writer.begin(path); !status.ok()) give_up(status);
  if (Status status = writer.commit(); !status.ok()) give_up(status);
  Result<gguf::Model> model = gguf::Model::open(path);
  std::filesystem::remove(path);
  if (!model.ok()) give_up(model.status());
  return *std::move(model);
}

Result<std::unique_ptr<model::Tokenizer>> VocabularyFile::tokenizer() const {
  const gguf::Model file = open();
  return model::Tokenizer::from_gguf(file);
}

}  // namespace leanstream::test
