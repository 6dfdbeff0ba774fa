#pragma once

namespace leanstream::cli {

// What the process ends with. Scripts rely on the numbers.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        // a file, the memory budget, the model: the sentence on stderr says
  kExitUsage = 2,         // the command line makes no sense
  kExitInterrupted = 130  // SIGINT or SIGTERM
};

}  // namespace leanstream::cli
