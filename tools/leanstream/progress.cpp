#include "progress.h"

#include <unistd.h>

#include <algorithm>

#include "interrupt.h"
#include "output.h"
#include "text.h"

namespace leanstream::cli {
namespace {

constexpr int kWidth = 32;

void write_stderr(const std::string& text) {
  const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(ignored);
}

}  // namespace

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), terminal_(stderr_is_terminal()) {}
ProgressBar::~ProgressBar() {
  hide();
}

void ProgressBar::show(double fraction) {
  if (!terminal_) return;
  const int percent = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 100);
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  const auto filled = static_cast<size_t>(percent * kWidth / 100);
  write_stderr(formatted("\r%s [%s%s] %3d %%", label_.c_str(), std::string(filled, '#').c_str(),
                         std::string(kWidth - filled, '.').c_str(), percent));
}

void ProgressBar::hide() {
  if (shown_percent_ >= 0) write_stderr("\r\x1b[K");
  shown_percent_ = -1;
}

int ProgressBar::from_library(float fraction, void* bar) {
  static_cast<ProgressBar*>(bar)->show(fraction);
  return interrupted() == 0;
}

}  // namespace leanstream::cli
