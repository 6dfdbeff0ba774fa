#include "model/tokenizer.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/model/vocabulary_file.h"

namespace leanstream::model {
namespace {

using test::VocabularyFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tokens = std::vector<Token>;

constexpr Tokenizer::Options kPlain{};
constexpr Tokenizer::Options kSpecial{.bos = false, .special = true};
constexpr Tokenizer::Options kPrompt{.bos = true, .special = true};

std::unique_ptr<Tokenizer> make(const VocabularyFile& file) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = file.tokenizer();
  if (!tokenizer.ok()) ADD_FAILURE() << tokenizer.status().message();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

Token byte_id(uint8_t byte) {
  return 3 + byte;
}  // in VocabularyFile::spm()

std::string decode(const Tokenizer& tokenizer, const Tokens& tokens, bool special = false) {
  return tokenizer.decode(tokens.data(), tokens.size(), special);
}

std::string random_bytes(std::mt19937& random, size_t most) {
  std::string bytes(random() % (most + 1), 0);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// ------------------------------------------------------------------------------------------------- SentencePiece type

TEST(SpmTokenizer, merges_the_pair_with_the_best_score_first) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token a = file.add("a", -9), b = file.add("b", -9), c = file.add("c", -9);
  const Token ab = file.add("ab", -2), bc = file.add("bc", -1);
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("abc", kPlain), ElementsAre(a, bc));
  EXPECT_THAT(tokenizer->encode("abab", kPlain), ElementsAre(ab, ab));
  EXPECT_THAT(tokenizer->encode("cba", kPlain), ElementsAre(c, b, a));
}

TEST(SpmTokenizer, merges_the_leftmost_of_equal_scores) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token a = file.add("a"), aa = file.add("aa", 0.0f);
  file.add("b");
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("aaaaa", kPlain), ElementsAre(aa, aa, a));
}

TEST(SpmTokenizer, treats_negative_zero_as_the_same_score) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  file.add("a"), file.add("b");
  const Token c = file.add("c"), ab = file.add("ab", -0.0f);
  file.add("bc", 0.0f);
  EXPECT_THAT(make(file)->encode("abc", kPlain), ElementsAre(ab, c));
}

TEST(SpmTokenizer, begins_the_text_with_a_space_unless_the_file_says_no) {
  VocabularyFile file = VocabularyFile::spm();
  const Token space = file.add("▁"), a = file.add("a"), space_a = file.add("▁a");
  EXPECT_THAT(make(file)->encode("a a", kPlain), ElementsAre(space_a, space_a));
  EXPECT_THAT(make(file)->encode(" a", kPlain), ElementsAre(space, space_a));
  EXPECT_THAT(make(file)->encode("", kPlain), IsEmpty());
  file.set_flag("add_space_prefix", false);
  EXPECT_THAT(make(file)->encode("a a", kPlain), ElementsAre(a, space_a));
}

TEST(SpmTokenizer, spells_what_is_no_token_in_byte_tokens) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token a = file.add("a");
  EXPECT_THAT(make(file)->encode("aé\n", kPlain), ElementsAre(a, byte_id(0xC3), byte_id(0xA9), byte_id('\n')));
}

TEST(SpmTokenizer, spells_invalid_bytes_one_by_one_and_keeps_what_follows) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token a = file.add("a");
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("\xE6\xAD", kPlain), ElementsAre(byte_id(0xE6), byte_id(0xAD)));
  EXPECT_THAT(tokenizer->encode("\xE2\x80", kPlain), ElementsAre(byte_id(0xE2), byte_id(0x80)));
  EXPECT_THAT(tokenizer->encode("\xE6"
                                "a",
                                kPlain),
              ElementsAre(byte_id(0xE6), a));
}

TEST(SpmTokenizer, uses_the_unknown_token_where_there_are_no_byte_tokens) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  file.tokens.resize(3), file.types.resize(3), file.scores.resize(3);
  const Token a = file.add("a");
  EXPECT_THAT(make(file)->encode("aé", kPlain), ElementsAre(a, 0, 0));
}

TEST(SpmTokenizer, merges_across_words_where_a_token_holds_a_space_inside) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  file.add("a", -5), file.add("▁", -5);
  const Token b = file.add("b", -5), space_b = file.add("▁b", -2);
  file.add("a▁", -1);
  const Token all = file.add("a▁a", -1);
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("a a", kPlain), ElementsAre(all));
  EXPECT_THAT(tokenizer->encode("b b", kPlain), ElementsAre(b, space_b));
}

TEST(SpmTokenizer, never_merges_text_into_a_control_token) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token less = file.add("<"), s = file.add("s"), greater = file.add(">"), less_s = file.add("<s", -1);
  EXPECT_THAT(make(file)->encode("<s>", kPlain), ElementsAre(less_s, greater));
  EXPECT_THAT(make(file)->encode("s<", kPlain), ElementsAre(s, less));
  EXPECT_THAT(make(file)->encode("<s>", kSpecial), ElementsAre(1));
}

TEST(SpmTokenizer, takes_the_space_prefix_off_the_first_word_only) {
  VocabularyFile file = VocabularyFile::spm();
  file.add("▁"), file.add("a");
  const Token space_a = file.add("▁a");
  const auto tokenizer = make(file);
  EXPECT_EQ(decode(*tokenizer, {space_a, space_a}), "a a");
  EXPECT_EQ(decode(*tokenizer, {tokenizer->bos(), space_a}), "a");
  EXPECT_EQ(decode(*tokenizer, {tokenizer->bos(), space_a}, true), "<s>a");
  EXPECT_EQ(tokenizer->piece(space_a, false), " a");
}

TEST(SpmTokenizer, gives_byte_tokens_as_raw_bytes) {
  const auto tokenizer = make(VocabularyFile::spm());
  EXPECT_EQ(tokenizer->piece(byte_id(0), false), std::string(1, '\0'));
  EXPECT_EQ(tokenizer->piece(byte_id(0xE2), false), "\xE2");
}

// --------------------------------------------------------------------------------------------------- byte-level BPE

TEST(BpeTokenizer, merges_in_the_order_of_the_files_list) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  const Token bc = file.add_merge("b", "c");
  const Token ab = file.add_merge("a", "b");
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("abc", kPlain), ElementsAre('a', bc));
  EXPECT_THAT(tokenizer->encode("abab", kPlain), ElementsAre(ab, ab));
}

TEST(BpeTokenizer, never_merges_across_words) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  file.add_merge("a", "Ġ");
  const Token space_b = file.add_merge("Ġ", "b");
  EXPECT_THAT(make(file)->encode("a b", kPlain), ElementsAre('a', space_b));
}

TEST(BpeTokenizer, takes_a_word_that_is_a_token_whole_where_the_family_does) {
  for (const bool whole : {false, true}) {
    VocabularyFile file = VocabularyFile::bpe(whole ? "llama-bpe" : "qwen2");
    const Token abc = file.add("abc");  // no merge leads to it
    const Tokens tokens = make(file)->encode("abc", kPlain);
    EXPECT_EQ(tokens, whole ? Tokens{abc} : (Tokens{'a', 'b', 'c'}));
  }
}

TEST(BpeTokenizer, spells_a_merge_result_that_is_no_token) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  file.merges.push_back("a b");
  const Token abc = file.add_merge("ab", "c");
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("ab", kPlain), ElementsAre('a', 'b'));
  EXPECT_THAT(tokenizer->encode("abc", kPlain), ElementsAre(abc));
}

TEST(BpeTokenizer, is_not_misled_by_a_token_outside_the_byte_alphabet) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  const Token raw = file.add("世");  // reachable by no text, and the same bytes as what the merges make
  const std::string e4 = test::byte_letter(0xE4), b8 = test::byte_letter(0xB8), x96 = test::byte_letter(0x96);
  file.add_merge(e4, b8);
  const Token merged = file.add_merge(e4 + b8, x96);
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("世", kPlain), ElementsAre(merged));
  EXPECT_EQ(tokenizer->piece(raw, false), "世");
  EXPECT_EQ(tokenizer->piece(merged, false), "世");
}

TEST(BpeTokenizer, merges_invalid_bytes_like_all_others) {
  VocabularyFile file = VocabularyFile::bpe("qwen2");
  const Token cut = file.add_merge(test::byte_letter(0xE2), test::byte_letter(0x80));
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("\xE2\x80", kPlain), ElementsAre(cut));
  EXPECT_THAT(tokenizer->encode("a\xE6\xAD"
                                "b",
                                kPlain),
              ElementsAre('a', 0xE6, 0xAD, 'b'));
}

TEST(BpeTokenizer, writes_the_replacement_character_for_a_byte_without_token) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  file.tokens[0xF5] = "another";
  EXPECT_THAT(make(file)->encode("a\xF5", kPlain), ElementsAre('a', 0xEF, 0xBF, 0xBD));
}

TEST(BpeTokenizer, refuses_a_pre_tokenizer_it_does_not_know_by_name) {
  const auto unknown = VocabularyFile::bpe("made-up").tokenizer();
  EXPECT_EQ(unknown.status().code(), Code::kUnsupported);
  EXPECT_THAT(unknown.status().message(), HasSubstr("\"made-up\""));
  const auto missing = VocabularyFile::bpe("").drop("tokenizer.ggml.pre").tokenizer();
  EXPECT_EQ(missing.status().code(), Code::kUnsupported);
  EXPECT_THAT(missing.status().message(), HasSubstr("tokenizer.ggml.pre"));
}

TEST(BpeTokenizer, compiles_the_patterns_of_every_name_it_knows) {
  for (const char* pre : {"default", "gpt-2", "phi-2", "olmo", "starcoder", "refact", "smollm", "command-r", "llama3",
                          "llama-v3", "llama-bpe", "dbrx", "smaug-bpe", "qwen2", "deepseek-r1-qwen", "tekken",
                          "seed-coder", "deepseek-llm", "deepseek-coder"}) {
    const auto tokenizer = make(VocabularyFile::bpe(pre));
    ASSERT_NE(tokenizer, nullptr) << pre;
    const std::string text = "Don't  split\t123 ÄB日本 \r\n\n  x!?\xFF ";
    EXPECT_EQ(decode(*tokenizer, tokenizer->encode(text, kPlain)), text) << pre;
  }
}

// Every string of up to four of the text's characters is a token, and every split of it a merge: a word becomes one
// token.
TEST(BpeTokenizer, cuts_words_as_each_family_does) {
  const auto words = [](const char* pre, const std::string& text) {
    VocabularyFile file = VocabularyFile::bpe(pre);
    const std::set<char> characters(text.begin(), text.end());
    std::vector<std::vector<std::string>> strings(1);  // the letters of each, of none first
    for (size_t i = 0; i < strings.size(); ++i) {
      const std::vector<std::string> letters = strings[i];
      std::string whole;
      for (const std::string& letter : letters) whole += letter;
      for (size_t split = 1; split < letters.size(); ++split) {
        std::string left, right;
        for (size_t k = 0; k < letters.size(); ++k) (k < split ? left : right) += letters[k];
        file.merges.push_back(left + " " + right);
      }
      if (letters.size() > 1) file.add(whole);
      for (const char c : characters) {
        if (letters.size() == 4) break;
        strings.push_back(letters);
        strings.back().push_back(test::byte_letter(static_cast<uint8_t>(c)));
      }
    }
    std::vector<std::string> result;
    const auto tokenizer = make(file);
    for (const Token token : tokenizer->encode(text, kPlain)) result.push_back(tokenizer->piece(token, false));
    return result;
  };
  EXPECT_THAT(words("gpt-2", "a's 111"), ElementsAre("a", "'s", " 111"));
  EXPECT_THAT(words("qwen2", "a'S 11"), ElementsAre("a", "'S", " ", "1", "1"));
  EXPECT_THAT(words("llama-bpe", "a 1111"), ElementsAre("a", " ", "111", "1"));
  EXPECT_THAT(words("starcoder", "a11"), ElementsAre("a", "1", "1"));
  EXPECT_THAT(words("gpt-2", "a   a"), ElementsAre("a", "  ", " a"));
  EXPECT_THAT(words("qwen2", "!\na"), ElementsAre("!\n", "a"));
  EXPECT_THAT(words("gpt-2", "!\na"), ElementsAre("!", "\n", "a"));
  EXPECT_THAT(words("tekken", "BBaB!/"), ElementsAre("BBa", "B", "!/"));
  EXPECT_THAT(words("llama-bpe", "BBaB!/"), ElementsAre("BBaB", "!/"));
  EXPECT_THAT(words("deepseek-coder", "\n\na!"), ElementsAre("\n", "\n", "a", "!"));
}

// ------------------------------------------------------------------------------------------------- special tokens

TEST(Tokenizer, makes_no_control_token_of_plain_ranges_nor_across_their_ends) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  const Token end = file.add("<|end|>", 0, test::kControl), tool = file.add("[tool]", 0, test::kUserDefined);
  const auto tokenizer = *file.tokenizer();
  const std::string text = "<|end|>a<|end|>b[tool]<|end|>";
  const auto count_of = [&](Token wanted, std::vector<TextRange> plain) {
    Tokenizer::Options options = kSpecial;
    options.plain = plain;
    const Tokens tokens = tokenizer->encode(text, options);
    EXPECT_EQ(decode(*tokenizer, tokens, true), text);
    return std::count(tokens.begin(), tokens.end(), wanted);
  };
  EXPECT_EQ(count_of(end, {}), 3);
  EXPECT_EQ(count_of(end, {{7, 16}}), 2);
  EXPECT_EQ(count_of(end, {{0, text.size()}}), 0);
  EXPECT_EQ(count_of(end, {{6, 7}, {8, 9}}), 1);     // one byte of each is enough
  EXPECT_EQ(count_of(end, {{7, 8}, {15, 22}}), 3);   // ranges that end where a token begins, and begin where one ends
  EXPECT_EQ(count_of(tool, {{0, text.size()}}), 1);  // user-defined tokens are found in any text
  EXPECT_EQ(count_of(tool, {{0, 18}, {20, text.size()}}), 1);
}

TEST(SpecialTokens, spell_as_text_unless_asked_for) {
  VocabularyFile file = VocabularyFile::bpe("qwen2");
  const Token start = file.add("<|im_start|>", 0, test::kControl);
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("a<|im_start|>b", kSpecial), ElementsAre('a', start, 'b'));
  EXPECT_EQ(tokenizer->encode("<|im_start|>", kPlain).size(), 12u);
  EXPECT_EQ(tokenizer->piece(start, false), "");
  EXPECT_EQ(tokenizer->piece(start, true), "<|im_start|>");
}

TEST(SpecialTokens, are_always_found_when_user_defined_and_the_longest_wins) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token x = file.add("x");
  const Token one = file.add("\n", 0, test::kUserDefined), two = file.add("\n\n", 0, test::kUserDefined);
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("x\n\n\nx", kPlain), ElementsAre(x, two, one, x));
  EXPECT_EQ(tokenizer->piece(two, false), "\n\n");
}

TEST(SpecialTokens, are_found_leftmost_first_when_they_overlap) {
  VocabularyFile file = VocabularyFile::bpe("gpt-2");
  const Token ab = file.add("ab", 0, test::kUserDefined);
  file.add("bcd", 0, test::kUserDefined);
  EXPECT_THAT(make(file)->encode("abcd", kPlain), ElementsAre(ab, 'c', 'd'));
}

TEST(SpecialTokens, are_followed_by_a_space_prefix_again) {
  VocabularyFile file = VocabularyFile::spm();
  const Token space = file.add("▁"), x = file.add("x"), space_x = file.add("▁x", 1);
  const auto tokenizer = make(file);
  EXPECT_THAT(tokenizer->encode("</s>x<s>\n", kSpecial), ElementsAre(2, space_x, 1, space, byte_id('\n')));
  EXPECT_THAT(tokenizer->encode("<s></s>", kSpecial), ElementsAre(1, 2));
  file.set_flag("add_space_prefix", false);
  EXPECT_THAT(make(file)->encode("</s>x<s>\n", kSpecial), ElementsAre(2, x, 1, byte_id('\n')));
}

TEST(SpecialTokens, swallow_white_space_in_phi3_files_only) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token x = file.add("x"), end = file.add("<|end|>", 0, test::kControl), space = file.add("▁");
  EXPECT_THAT(make(file)->encode("<|end|>\n x", kSpecial), ElementsAre(end, byte_id('\n'), space, x));
  file.set_text("general.name", "Phi-3 mini");
  EXPECT_THAT(make(file)->encode("<|end|>\n x<s> x", kSpecial), ElementsAre(end, x, 1, space, x));
}

TEST(SpecialTokens, begin_with_one_bos_even_if_the_text_spells_it) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false);
  const Token x = file.add("x");
  const auto tokenizer = make(file);
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_THAT(tokenizer->encode("x", kPrompt), ElementsAre(1, x));
  EXPECT_THAT(tokenizer->encode("<s>x", kPrompt), ElementsAre(1, x));
  EXPECT_THAT(tokenizer->encode("<s><s>x", kPrompt), ElementsAre(1, 1, x));  // spelled twice: meant twice
  EXPECT_THAT(tokenizer->encode("</s>x", kPrompt), ElementsAre(1, 2, x));    // two different leading specials
  EXPECT_THAT(tokenizer->encode("", kPrompt), ElementsAre(1));
  EXPECT_EQ(tokenizer->encode("<s>", {.bos = true, .special = false})[0], 1);  // spelled as text: a BOS of our own
  EXPECT_EQ(tokenizer->encode("<s>", {.bos = true, .special = false}).size(), 4u);
}

TEST(SpecialTokens, follow_the_files_wish_for_bos_and_eos) {
  VocabularyFile file = VocabularyFile::spm();
  file.set_flag("add_space_prefix", false).set_flag("add_bos_token", false).set_flag("add_eos_token", true);
  const Token x = file.add("x");
  const auto tokenizer = make(file);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_THAT(tokenizer->encode("x", kPrompt), ElementsAre(x, 2));
  EXPECT_THAT(tokenizer->encode("x</s>", kPrompt), ElementsAre(x, 2));
  EXPECT_THAT(tokenizer->encode("x", kSpecial), ElementsAre(x));
}

TEST(SpecialTokens, include_no_bos_where_the_file_has_none) {
  VocabularyFile file = VocabularyFile::bpe("llama-bpe");  // a family that adds one
  const auto tokenizer = make(file);
  EXPECT_EQ(tokenizer->bos(), -1);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_THAT(tokenizer->encode("", kPrompt), IsEmpty());
}

TEST(SpecialTokens, end_generation_by_id_or_by_their_text) {
  VocabularyFile file = VocabularyFile::spm();
  const Token eot = file.add("whatever", 0, test::kControl);
  const Token im_end = file.add("<|im_end|>", 0, test::kUserDefined);  // as many converted files have it
  const Token normal = file.add("x");
  file.set_id("eot", static_cast<uint32_t>(eot));
  const auto tokenizer = make(file);
  EXPECT_TRUE(tokenizer->ends_generation(tokenizer->eos()));
  EXPECT_TRUE(tokenizer->ends_generation(eot));
  EXPECT_TRUE(tokenizer->ends_generation(im_end));
  EXPECT_EQ(tokenizer->piece(im_end, false), "");
  EXPECT_FALSE(tokenizer->ends_generation(normal));
  EXPECT_FALSE(tokenizer->ends_generation(tokenizer->bos()));
  EXPECT_FALSE(tokenizer->ends_generation(-1));
  EXPECT_FALSE(tokenizer->ends_generation(1 << 30));
}

TEST(SpecialTokens, do_not_end_generation_when_their_text_is_html) {
  VocabularyFile file = VocabularyFile::spm();
  file.types[2] = test::kUserDefined;  // "</s>", struck-through text: as in Gemma's vocabulary
  file.set_id("eos", 1);
  EXPECT_FALSE(make(file)->ends_generation(2));
}

// ------------------------------------------------------------------------------------------------------- any text

TEST(Tokenizer, gives_back_any_bytes) {
  std::mt19937 random(7);
  VocabularyFile spm = VocabularyFile::spm();
  for (const char* piece : {"▁", "a", "b", "ab", "▁a", "▁▁", "é", "世"})
    spm.add(piece, -static_cast<float>(random() % 9));
  VocabularyFile bpe = VocabularyFile::bpe("llama-bpe");
  bpe.add_merge("a", "b"), bpe.add_merge("Ġ", "a"), bpe.add_merge("Ã", "©");
  for (const auto& tokenizer : {make(spm), make(bpe), make(VocabularyFile::bpe("deepseek-llm"))}) {
    for (int i = 0; i < 2000; ++i) {
      std::string text = random_bytes(random, 40);
      if (i % 2) text += "ab é世 \n  a" + random_bytes(random, 4);
      ASSERT_EQ(decode(*tokenizer, tokenizer->encode(text, kPlain)), text);
    }
  }
}

TEST(Tokenizer, keeps_nul_bytes_and_what_follows) {
  const std::string text("a\0b\0", 4);
  for (const auto& tokenizer : {make(VocabularyFile::spm()), make(VocabularyFile::bpe("gpt-2"))}) {
    EXPECT_EQ(decode(*tokenizer, tokenizer->encode(text, kPlain)), text);
  }
}

// A pattern or a merge loop that is quadratic in a run's length would take hours here.
TEST(Tokenizer, takes_long_runs_of_one_character_in_its_stride) {
  VocabularyFile spm = VocabularyFile::spm();
  spm.set_flag("add_space_prefix", false);
  for (const char* piece : {"a", "aa", "▁", "▁▁", "▁a"}) spm.add(piece);
  VocabularyFile bpe = VocabularyFile::bpe("llama-bpe");
  bpe.add_merge("a", "a"), bpe.add_merge("Ġ", "Ġ");
  constexpr size_t kSize = 1 << 20;
  for (const auto& tokenizer : {make(spm), make(bpe), make(VocabularyFile::bpe("deepseek-llm")),
                                make(VocabularyFile::bpe("tekken")), make(VocabularyFile::bpe("default"))}) {
    for (const std::string& text : {std::string(kSize, 'a'), std::string(kSize, ' ') + "x", std::string(kSize, '\n'),
                                    std::string(kSize, '\xFF'), std::string(kSize, 'A') + "1"}) {
      ASSERT_EQ(decode(*tokenizer, tokenizer->encode(text, kPlain)), text);
    }
  }
}

// ------------------------------------------------------------------------------------------------ malformed files

void expect_malformed(const VocabularyFile& file, const std::string& part) {
  const auto tokenizer = file.tokenizer();
  EXPECT_EQ(tokenizer.status().code(), Code::kMalformed) << part;
  EXPECT_THAT(tokenizer.status().message(), HasSubstr(part));
}

gguf::Value uint8_array(size_t size) {
  gguf::Array array;
  array.type = gguf::ValueType::kUint8;
  array.unsigneds.resize(size, 1);
  return {gguf::ValueType::kArray, std::move(array)};
}

TEST(TokenizerFile, is_refused_when_an_array_is_missing) {
  for (const char* key : {"tokens", "token_type", "scores"}) {
    expect_malformed(VocabularyFile::spm().drop(std::string("tokenizer.ggml.") + key), key);
  }
  expect_malformed(VocabularyFile::bpe("gpt-2").drop("tokenizer.ggml.merges"), "tokenizer.ggml.merges");
}

TEST(TokenizerFile, is_refused_when_arrays_have_the_wrong_element_type) {
  VocabularyFile file = VocabularyFile::spm();
  expect_malformed(VocabularyFile::spm().set("tokenizer.ggml.scores", uint8_array(259)), "tokenizer.ggml.scores");
  expect_malformed(VocabularyFile::spm().set("tokenizer.ggml.token_type", uint8_array(259)),
                   "tokenizer.ggml.token_type");
  expect_malformed(VocabularyFile::bpe("gpt-2").set("tokenizer.ggml.merges", uint8_array(3)), "tokenizer.ggml.merges");
}

TEST(TokenizerFile, is_refused_when_arrays_are_shorter_than_the_tokens) {
  VocabularyFile scores = VocabularyFile::spm();
  scores.scores.pop_back();
  expect_malformed(scores, "258 elements for 259 tokens");
  VocabularyFile types = VocabularyFile::spm();
  types.types.pop_back();
  expect_malformed(types, "258 elements for 259 tokens");
}

TEST(TokenizerFile, is_refused_when_a_byte_token_is_none) {
  for (const char* text : {"<0x-1>", "<0xZZ>", "<0x>", "0x0A", "<0x0A", "<0x0AB>"}) {
    VocabularyFile file = VocabularyFile::spm();
    file.tokens[13] = text;
    expect_malformed(file, "byte token 13");
  }
}

TEST(TokenizerFile, is_refused_for_other_values_out_of_range) {
  expect_malformed(VocabularyFile::spm().set_id("eos", 259), "tokenizer.ggml.eos_token_id");
  VocabularyFile nan = VocabularyFile::spm();
  nan.scores[5] = std::numeric_limits<float>::quiet_NaN();
  expect_malformed(nan, "element 5 is not a number");
  VocabularyFile type = VocabularyFile::spm();
  type.types[4] = 7;
  expect_malformed(type, "token 4 has the unknown type 7");
  VocabularyFile merges = VocabularyFile::bpe("gpt-2");
  merges.merges = {"a b", "ab"};
  expect_malformed(merges, "entry 1");
  VocabularyFile empty = VocabularyFile::bpe("gpt-2");
  empty.tokens.clear(), empty.types.clear(), empty.scores.clear();
  expect_malformed(empty, "has 0 tokens");
}

TEST(TokenizerFile, may_write_minus_one_for_an_id_it_does_not_have) {
  const auto tokenizer = make(VocabularyFile::spm().set_id("eos", UINT32_MAX));
  EXPECT_EQ(tokenizer->eos(), -1);
  EXPECT_EQ(tokenizer->bos(), 1);
}

TEST(TokenizerFile, of_another_kind_is_refused_by_name) {
  for (const char* kind : {"t5", "bert", "rwkv"}) {
    const auto tokenizer = VocabularyFile::spm().set_text("tokenizer.ggml.model", kind).tokenizer();
    EXPECT_EQ(tokenizer.status().code(), Code::kUnsupported);
    EXPECT_THAT(tokenizer.status().message(), HasSubstr(kind));
  }
}

}  // namespace
}  // namespace leanstream::model
