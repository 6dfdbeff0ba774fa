#include "tests/runtime/tiny_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>

namespace leanstream::test {
namespace {

struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& name)
      : path(testing::TempDir() + "leanstream-" + std::to_string(::getpid()) + "-" + name) {}
  ~TemporaryFile() { std::remove(path.c_str()); }
};

void add_vocabulary(ModelFile& file) {
  constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;
  gguf::Array tokens, scores, types;
  tokens.type = gguf::ValueType::kString;
  scores.type = gguf::ValueType::kFloat32;
  types.type = gguf::ValueType::kInt32;
  const auto add = [&](const std::string& text, double score, int32_t type) {
    tokens.strings.push_back(text);
    scores.floats.push_back(score);
    types.signeds.push_back(type);
  };
  add("<unk>", 0, kUnknown);
  add("<s>", 0, kControl);
  add("</s>", 0, kControl);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    add(text, 0, kByte);
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) add(std::string(1, letter), -double(letter), kNormal);
  add("\xE2\x96\x81", -200, kNormal);  // U+2581, the space
  while (tokens.strings.size() < kTinyVocabulary) add("word" + std::to_string(tokens.strings.size()), -1000.0, kNormal);

  file.set("tokenizer.ggml.model", {gguf::ValueType::kString, std::string("llama")});
  file.set("tokenizer.ggml.tokens", {gguf::ValueType::kArray, tokens});
  file.set("tokenizer.ggml.scores", {gguf::ValueType::kArray, scores});
  file.set("tokenizer.ggml.token_type", {gguf::ValueType::kArray, types});
  file.set("tokenizer.ggml.bos_token_id", {gguf::ValueType::kUint32, uint64_t{kTinyBos}});
  file.set("tokenizer.ggml.eos_token_id", {gguf::ValueType::kUint32, uint64_t{kTinyEos}});
  file.set("tokenizer.chat_template",
           {gguf::ValueType::kString,
            std::string("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
                        "}}{% endif %}")});
}

}  // namespace

ModelFile tiny_model(WeightType type) {
  TinyShape shape;
  shape.type = type;
  shape.n_vocab = kTinyVocabulary;
  ModelFile file(shape);
  file.set_number("context_length", kTinyContext);
  add_vocabulary(file);
  return file;
}

const std::string& tiny_model_path() {
  static const TemporaryFile file("tiny.gguf");
  static const std::string path = tiny_model().write(file.path);
  return path;
}

const std::string& nan_model_path() {
  static const TemporaryFile file("nan.gguf");
  static const std::string path = [] {
    tiny_model().write(file.path);
    const Result<gguf::Model> model = gguf::Model::open(file.path);
    EXPECT_TRUE(model.ok());
    std::fstream bytes(file.path, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(model->find_tensor("output_norm.weight")->offset));
    const float nan = std::nanf("");
    bytes.write(reinterpret_cast<const char*>(&nan), sizeof nan);
    return file.path;
  }();
  return path;
}

}  // namespace leanstream::test
