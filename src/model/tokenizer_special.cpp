#include "model/tokenizer_special.h"

#include <algorithm>

namespace leanstream::model {

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, bool controls) : vocabulary_(vocabulary) {
  for (Token id = 0; id < static_cast<Token>(vocabulary.size()); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool control = type == TokenType::kControl || type == TokenType::kUnknown;
    if (vocabulary.bytes(id).empty() || !(type == TokenType::kUserDefined || (controls && control))) continue;
    sorted_.push_back(id);
  }
  // Stable: of equal texts the lowest id comes first.
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [&](Token a, Token b) { return vocabulary_.bytes(a) < vocabulary_.bytes(b); });
  for (int byte = 0; byte < 256; ++byte) {
    by_first_[static_cast<size_t>(byte)] = narrow({0, sorted_.size()}, 0, static_cast<char>(byte));
  }
}

SpecialTokens::Range SpecialTokens::narrow(Range range, size_t depth, char byte) const {
  // Within `range` all texts agree before `depth`, so they are ordered by their byte there; a text that ends comes
  // first.
  const auto key = [&](Token id) {
    const std::string_view bytes = vocabulary_.bytes(id);
    return depth < bytes.size() ? static_cast<int>(static_cast<uint8_t>(bytes[depth])) : -1;
  };
  const int wanted = static_cast<uint8_t>(byte);
  const auto first = sorted_.begin() + static_cast<std::ptrdiff_t>(range.begin);
  const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(range.end);
  const auto low = std::partition_point(first, last, [&](Token id) { return key(id) < wanted; });
  const auto high = std::partition_point(low, last, [&](Token id) { return key(id) <= wanted; });
  return {static_cast<size_t>(low - sorted_.begin()), static_cast<size_t>(high - sorted_.begin())};
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t from, std::span<const TextRange> plain) const {
  for (size_t begin = from; begin < text.size() && !sorted_.empty(); ++begin) {
    while (!plain.empty() && plain.front().end <= begin) plain = plain.subspan(1);
    const size_t controls_end = plain.empty() ? text.size() : plain.front().begin;
    Range range = by_first_[static_cast<uint8_t>(text[begin])];
    Match best;
    for (size_t depth = 1; range.begin < range.end; ++depth) {
      const Token shortest = sorted_[range.begin];
      const bool allowed = begin + depth <= controls_end || vocabulary_.type(shortest) == TokenType::kUserDefined;
      if (allowed && vocabulary_.bytes(shortest).size() == depth) best = {begin, begin + depth, shortest};
      if (begin + depth == text.size()) break;
      range = narrow(range, depth, text[begin + depth]);
    }
    if (best.id >= 0) return best;
  }
  return {text.size(), text.size(), -1};
}

}  // namespace leanstream::model
