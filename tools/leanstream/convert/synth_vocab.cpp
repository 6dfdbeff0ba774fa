#include "tools/leanstream/convert/synth_vocab.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace leanstream::convert {
namespace {

constexpr std::string_view kLettersByFrequency = "etaoinshrdlcumwfgypbvkjxqz";

// Token types of the file format.
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;

// Calls use(whole, last) for strings of two letters and more, shorter ones first, each first as the beginning of a word
// (`space` before it) and then as the inside of one, until `count` have been given. `last` is the final letter, so
// that whole less last is a string that came before, or a single symbol.
template <typename Use>
void for_each_string(std::string_view space, uint32_t count, Use use) {
  std::vector<std::string> shorter = {std::string(space), ""};  // prefixes to extend by one letter
  while (true) {
    std::vector<std::string> longer;
    for (const std::string& prefix : shorter) {
      for (const char letter : kLettersByFrequency) {
        longer.push_back(prefix + letter);
        if (prefix.empty()) continue;  // a single letter is no string of two symbols
        if (count-- == 0) return;
        use(longer.back(), std::string_view(longer.back()).substr(prefix.size()));
      }
    }
    shorter = std::move(longer);
  }
}

std::string utf8(uint32_t code_point) {  // below U+0800
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3f))};
}

// The character by which byte-level BPE writes a byte: itself where it is printable in Latin-1, else U+0100 and on.
std::vector<std::string> byte_characters() {
  std::vector<std::string> characters;
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
    characters.push_back(utf8(printable ? b : next++));
  }
  return characters;
}

}  // namespace

void set_spm_vocabulary(gguf::Writer& writer, uint32_t n_vocab, bool add_space_prefix) {
  constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
  gguf::StringList tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  // Merging prefers high scores: strings that come first.
  const auto add = [&](std::string_view text, int32_t type) {
    scores.push_back(type == kNormal ? -static_cast<float>(tokens.size()) : 0.0f);
    tokens.push_back(text);
    types.push_back(type);
  };
  add("<unk>", kUnknown);
  add("<s>", kControl);
  add("</s>", kControl);
  for (unsigned b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", b);
    add(name, kByte);
  }
  add(kSpace, kNormal);
  for (char c = '!'; c <= '~'; ++c) add(std::string_view(&c, 1), kNormal);
  for_each_string(kSpace, n_vocab - static_cast<uint32_t>(tokens.size()),
                  [&](std::string_view whole, std::string_view) { add(whole, kNormal); });

  writer.set_string("tokenizer.ggml.model", "llama");
  writer.set_string("tokenizer.ggml.pre", "default");
  writer.set_strings("tokenizer.ggml.tokens", std::move(tokens));
  writer.set_floats("tokenizer.ggml.scores", scores);
  writer.set_int32s("tokenizer.ggml.token_type", types);
  writer.set_uint32("tokenizer.ggml.unknown_token_id", 0);
  writer.set_uint32("tokenizer.ggml.bos_token_id", 1);
  writer.set_uint32("tokenizer.ggml.eos_token_id", 2);
  writer.set_bool("tokenizer.ggml.add_bos_token", true);
  writer.set_bool("tokenizer.ggml.add_eos_token", false);
  writer.set_bool("tokenizer.ggml.add_space_prefix", add_space_prefix);
}

void set_bpe_vocabulary(gguf::Writer& writer, uint32_t n_vocab) {
  constexpr std::string_view kControls[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  const std::vector<std::string> bytes = byte_characters();
  gguf::StringList tokens, merges;
  for (const std::string& character : bytes) tokens.push_back(character);
  const uint32_t n_strings = n_vocab - static_cast<uint32_t>(bytes.size() + std::size(kControls));
  for_each_string(bytes[' '], n_strings, [&](std::string_view whole, std::string_view last) {
    tokens.push_back(whole);
    merges.push_back(std::string(whole.substr(0, whole.size() - last.size())) + " " + std::string(last));
  });
  std::vector<int32_t> types(tokens.size(), kNormal);
  const uint32_t end_of_text = static_cast<uint32_t>(tokens.size());
  for (std::string_view control : kControls) {
    tokens.push_back(control);
    types.push_back(kControl);
  }

  writer.set_string("tokenizer.ggml.model", "gpt2");
  writer.set_string("tokenizer.ggml.pre", "qwen2");
  writer.set_strings("tokenizer.ggml.tokens", std::move(tokens));
  writer.set_int32s("tokenizer.ggml.token_type", types);
  writer.set_strings("tokenizer.ggml.merges", std::move(merges));
  writer.set_uint32("tokenizer.ggml.bos_token_id", end_of_text);
  writer.set_uint32("tokenizer.ggml.eos_token_id", end_of_text + 2);
  writer.set_bool("tokenizer.ggml.add_bos_token", false);
  writer.set_string("tokenizer.chat_template",
                    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
                    "{% endif %}");
}

}  // namespace leanstream::convert
