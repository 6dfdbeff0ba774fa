#pragma once

#include <string_view>

#include "base/status.h"

namespace leanstream::cli {

// Standard output: bytes, unbuffered. When its reader has gone, or a write failed, it takes nothing more, and the
// command ends early. Single-thread.
class StandardOutput {
 public:
  // False when nothing more can be written, or an interrupt came while it was blocked.
  bool write(std::string_view bytes);

  bool open() const { return !reader_gone_ && failure_.ok(); }
  bool reader_gone() const { return reader_gone_; }   // a closed pipe: the normal end of `| head`
  const Status& failure() const { return failure_; }  // anything else: kIo

  // On a terminal, ends an unfinished line, so that the shell's prompt begins a new one. A file or pipe gets the text
  // and no byte more.
  void finish_line_on_terminal();

  // Exit code of a command that has done everything but this: 0, or 1 after saying why.
  int exit_code() const;

 private:
  bool reader_gone_ = false;
  bool line_unfinished_ = false;
  Status failure_;
};

// Opens /dev/null in place of each standard descriptor that is closed, so that no file opened later becomes standard
// output. Once, before anything is opened.
void occupy_standard_descriptors();

bool stdin_is_terminal();
bool stderr_is_terminal();

}  // namespace leanstream::cli
