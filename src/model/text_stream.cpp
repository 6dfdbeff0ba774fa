#include "model/text_stream.h"

#include <algorithm>
#include <utility>

#include "model/utf8.h"

namespace leanstream::model {
namespace {

// `text` less an unfinished character at its end.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const bool continuation = (static_cast<uint8_t>(tail[0]) & 0xC0) == 0x80;
    if (continuation) continue;
    return utf8_head(tail).kind == Utf8Head::kUnfinished ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stop_strings) : stop_strings_(std::move(stop_strings)) {
  std::erase_if(stop_strings_, [](const std::string& stop) { return stop.empty(); });
}

std::string TextStream::push(std::string_view piece) {
  if (stopped_) return {};
  pending_ += piece;

  size_t first_end = std::string::npos, first_begin = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    const size_t begin = pending_.find(stop);
    if (begin == std::string::npos) continue;
    if (std::pair(begin + stop.size(), begin) < std::pair(first_end, first_begin)) {
      first_end = begin + stop.size();
      first_begin = begin;
    }
  }
  if (first_end != std::string::npos) {
    std::string shown = pending_.substr(0, first_begin);
    pending_.clear();
    stopped_ = true;
    return shown;
  }

  const size_t free = pending_.size() - stop_prefix_size();
  const size_t size = whole_characters(std::string_view(pending_).substr(0, free));
  std::string shown = pending_.substr(0, size);
  pending_.erase(0, size);
  return shown;
}

size_t TextStream::stop_prefix_size() const {
  size_t held = 0;
  for (const std::string& stop : stop_strings_) {
    for (size_t size = std::min(stop.size() - 1, pending_.size()); size > held; --size) {
      if (std::string_view(pending_).ends_with(std::string_view(stop).substr(0, size))) held = size;
    }
  }
  return held;
}

std::string TextStream::finish() {
  return std::exchange(pending_, {});
}

}  // namespace leanstream::model
