#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leanstream::model {

// Turns token pieces into text that can be shown: holds back the bytes of an unfinished UTF-8 character and whatever
// could still become a stop string. What is shown does not depend on how the text is cut into pieces. Bytes that are no
// UTF-8 pass through. Single-thread.
class TextStream {
 public:
  // Empty stop strings are ignored.
  explicit TextStream(std::vector<std::string> stop_strings);

  // Adds a piece and returns what can be shown now. Once a stop string is complete: the text before it, and stopped().
  // Of several the first to be complete counts, the longest where they end together.
  std::string push(std::string_view piece);

  // The rest, at the end of generation: held-back text, with an unfinished character as its raw bytes.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  size_t stop_prefix_size() const;  // bytes at the end of pending_ that may be the beginning of a stop string

  std::vector<std::string> stop_strings_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace leanstream::model
