#pragma once

#include <string>

namespace leanstream::cli {

// One line on standard error that redraws itself and goes away with the object. Nothing at all when standard error
// is no terminal. Single-thread.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double fraction);  // 0 .. 1
  void hide();

  // For the progress callbacks of the library: shows it and says whether to go on.
  static int from_library(float fraction, void* bar);

 private:
  std::string label_;
  bool terminal_;
  int shown_percent_ = -1;
};

}  // namespace leanstream::cli
