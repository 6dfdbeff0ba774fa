#pragma once

#include <functional>
#include <string>

#include "flags.h"

namespace leanstream::cli {

// A subcommand. `run` is called once the flags are parsed and returns the exit code.
struct Command {
  std::string name;
  std::string summary;
  std::function<void(Flags&)> add_flags;
  std::function<int()> run;
};

Command run_command();
Command chat_command();
Command info_command();
Command plan_command();
Command tokenize_command();
Command perplexity_command();
Command bench_command();
Command synth_command();
Command quantize_command();
Command pack_command();
Command cache_sim_command();

}  // namespace leanstream::cli
