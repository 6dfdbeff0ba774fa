#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leanstream::model {

// Turns token pieces into text that can be shown: holds back the bytes of an unfinished UTF-8 character and whatever
// could still become a stop string. Single-thread.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stop_strings);

  // Adds a piece and returns what can be shown now. After a stop string was met: the text before it, and stopped().
  std::string push(std::string_view piece);

  // The rest, at the end of generation: held-back text, with an unfinished character as its raw bytes.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stop_strings_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace leanstream::model
