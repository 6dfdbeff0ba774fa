// The vocabularies of real models. Their .inp/.out cases and the ids below come from the models' own tokenizers or from
// llama.cpp (llama_tokenize), where the two agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/tokenizer.h"

namespace leanstream::model {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<Token>;

std::string vocabulary_path(const std::string& name) {
  return std::string(LEANSTREAM_SHARED_DIR) + "/vocab/ggml-vocab-" + name + ".gguf";
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

class RealVocabulary : public ::testing::TestWithParam<const char*> {
 protected:
  void load(const std::string& name) {
    if (!std::filesystem::exists(vocabulary_path(name))) GTEST_SKIP() << vocabulary_path(name) << " is not there";
    Result<gguf::Model> file = gguf::Model::open(vocabulary_path(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::from_gguf(*file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    tokenizer_ = *std::move(tokenizer);
  }
  Tokens plain(std::string_view text) const { return tokenizer_->encode(text, {}); }
  Tokens special(std::string_view text) const { return tokenizer_->encode(text, {.bos = false, .special = true}); }
  Tokens prompt(std::string_view text) const { return tokenizer_->encode(text, {.bos = true, .special = true}); }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(RealVocabulary, encodes_every_case_like_the_models_own_tokenizer) {
  load(GetParam());
  if (tokenizer_ == nullptr) return;
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string inputs = read_file(vocabulary_path(GetParam()) + ".inp");
  std::istringstream expected(read_file(vocabulary_path(GetParam()) + ".out"));
  std::string line;
  size_t begin = 0, cases = 0;
  for (size_t end; (end = inputs.find(kSeparator, begin)) != std::string::npos; begin = end + kSeparator.size()) {
    ASSERT_TRUE(std::getline(expected, line));
    std::istringstream ids(line);
    Tokens want;
    for (Token id; ids >> id;) want.push_back(id);
    const std::string text = inputs.substr(begin, end - begin);
    const Tokens got = plain(text);
    EXPECT_EQ(got, want) << text;
    EXPECT_EQ(tokenizer_->decode(got.data(), got.size(), false), text);
    ++cases;
  }
  EXPECT_EQ(cases, 46u);
}

INSTANTIATE_TEST_SUITE_P(All, RealVocabulary,
                         ::testing::Values("gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "starcoder"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class RealVocabularyCase : public RealVocabulary {};

TEST_F(RealVocabularyCase, llama2_marks_the_first_word_and_spells_an_emoji_in_bytes) {
  load("llama-spm");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(plain("This is 🦙.cpp"), ElementsAre(910, 338, 29871, 243, 162, 169, 156, 29889, 8223));
}

TEST_F(RealVocabularyCase, llama2_after_special_tokens) {
  load("llama-spm");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(special("<s>\n"), ElementsAre(1, 29871, 13));
  EXPECT_THAT(special("</s>text<s> x"), ElementsAre(2, 1426, 1, 29871, 921));
  EXPECT_THAT(plain("<s>\n"), ElementsAre(529, 29879, 29958, 13));
  EXPECT_THAT(prompt("hello"), ElementsAre(1, 22172));
  EXPECT_THAT(prompt("<s>hello"), ElementsAre(1, 22172));
}

TEST_F(RealVocabularyCase, phi3_drops_white_space_after_its_markers) {
  load("phi-3");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(special("<|user|>\nHi there<|end|>\n<|assistant|>"), ElementsAre(32010, 6324, 727, 32007, 32001));
  EXPECT_THAT(special("a </s>  b<s>  c"), ElementsAre(263, 29871, 2, 289, 1, 259, 274));
  EXPECT_TRUE(tokenizer_->ends_generation(32000));
  EXPECT_TRUE(tokenizer_->ends_generation(32007));
}

TEST_F(RealVocabularyCase, qwen2_reads_chat_markers_only_when_asked) {
  load("qwen2");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(special("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
              ElementsAre(151644, 872, 198, 13048, 151645, 198, 151644, 77091, 198));
  EXPECT_THAT(plain("<|im_start|>user"), ElementsAre(27, 91, 318, 4906, 91, 29, 872));
  EXPECT_TRUE(tokenizer_->ends_generation(151645));
  EXPECT_FALSE(tokenizer_->adds_bos());
}

TEST_F(RealVocabularyCase, llama3_begins_with_one_bos) {
  load("llama-bpe");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(prompt("<|begin_of_text|>Hi<|eot_id|>"), ElementsAre(128000, 13347, 128009));
  EXPECT_THAT(prompt("Hi"), ElementsAre(128000, 13347));
  EXPECT_TRUE(tokenizer_->ends_generation(128009));
}

TEST_F(RealVocabularyCase, llama3_splits_unusual_unicode) {
  load("llama-bpe");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(plain("\u2029 \uA3A7\uA3A8"), ElementsAre(378, 102, 8790, 236, 100, 166, 236, 101));
  EXPECT_THAT(plain("I'LL we'Ll don'T"), ElementsAre(40, 6, 4178, 584, 92526, 75, 1541, 17773));
  EXPECT_THAT(plain("1234567 ½٣"), ElementsAre(4513, 10961, 22, 220, 27154, 117413));
  EXPECT_THAT(plain("ÀB\u0302ÇDé ǅ"), ElementsAre(73053, 33, 118739, 47013, 87993, 220, 131, 227));
  EXPECT_THAT(plain("東京 한국어\u3000。"), ElementsAre(111344, 104008, 32179, 23249, 1811));
  EXPECT_THAT(plain(" \u2028\u0085\u180E x"), ElementsAre(639, 101, 116360, 157, 254, 236, 865));
}

TEST_F(RealVocabularyCase, qwen2_splits_unusual_unicode) {
  load("qwen2");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(plain("\u2029 \uA3A7\uA3A8"), ElementsAre(378, 102, 8620, 236, 100, 166, 236, 101));
  EXPECT_THAT(plain("I'LL we'Ll don'T"), ElementsAre(40, 6, 4086, 582, 91426, 75, 1513, 17323));
  EXPECT_THAT(plain("1234567 ½٣"), ElementsAre(16, 17, 18, 19, 20, 21, 22, 220, 26062, 149, 96));
  EXPECT_THAT(plain("ÀB\u0302ÇDé ǅ"), ElementsAre(71953, 33, 136, 224, 45913, 86893, 220, 131, 227));
  EXPECT_THAT(plain("東京 한국어\u3000。"), ElementsAre(102356, 46553, 130092, 31079, 22441, 1773));
  EXPECT_THAT(plain(" \u2028\u0085\u180E x"), ElementsAre(636, 101, 126, 227, 123970, 236, 856));
}

TEST_F(RealVocabularyCase, gpt2_splits_unusual_unicode) {
  load("gpt-2");
  if (tokenizer_ == nullptr) return;
  EXPECT_THAT(plain("I'LL we'Ll don'T"), ElementsAre(40, 6, 3069, 356, 6, 43, 75, 836, 6, 51));
  EXPECT_THAT(plain("1234567 ½٣"), ElementsAre(10163, 2231, 3134, 25208, 149, 96));
  EXPECT_THAT(plain(" \u2028\u0085\u180E x"), ElementsAre(564, 101, 126, 227, 157, 254, 236, 2124));
}

}  // namespace
}  // namespace leanstream::model
