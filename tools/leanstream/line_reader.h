#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace leanstream::cli {

// Standard input, line by line. Single-thread.
class LineReader {
 public:
  // The next line without its newline; the last one may have none. Nothing at the end. Errors: kIo.
  Result<std::optional<std::string>> next();

 private:
  std::string pending_;
  bool at_end_ = false;
};

}  // namespace leanstream::cli
