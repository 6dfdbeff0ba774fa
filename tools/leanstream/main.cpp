#include <algorithm>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "commit.h"
#include "exit_code.h"
#include "handles.h"
#include "help_format.h"
#include "interrupt.h"
#include "log.h"
#include "model_options.h"
#include "output.h"
#include "spellings.h"
#include "text.h"

namespace leanstream::cli {
namespace {

int list_devices() {
  const Result<Runtime> runtime = create_runtime({});
  if (!runtime.ok()) return report_failure(runtime.status());
  const Result<leanstream_runtime_info> info = runtime_info(**runtime);
  if (!info.ok()) return report_failure(info.status());
  StandardOutput out;
  out.write(formatted("cpu: %s, %s, %u threads\n", info->device_name, info->simd, info->threads));
  return out.exit_code();
}

// The first line of what the parser has to say.
int report_parse_error(const CLI::ParseError& error, const std::string& command) {
  std::string sentence = error.what();
  sentence = sentence.substr(0, sentence.find('\n'));
  return report_usage(sentence + " (see leanstream " + (command.empty() ? "" : command + " ") + "-h)");
}

int print(const std::string& text) {
  StandardOutput out;
  out.write(text);
  return out.exit_code();
}

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  install_signal_handlers();

  CLI::App root("Runs GGUF language models inside a memory budget.", "leanstream");
  bool devices = false;
  bool version = false;
  root.add_flag("--version", version, "Print the version and leave");
  root.add_flag("--list-devices", devices, "Print what there is to compute on and leave");
  root.set_help_flag("-h,--help", "Print this and leave");
  root.require_subcommand(0, 1);
  root.formatter(std::make_shared<HelpFormat>());
  root.footer(
      "Sizes: 2G, 800M, 64K (powers of 1024), or 60% of the model file. Text goes to standard output, all else to\n"
      "standard error. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.");
  const std::vector<Command> commands = {
      run_command(),   chat_command(),  info_command(),     plan_command(), tokenize_command(),  perplexity_command(),
      bench_command(), synth_command(), quantize_command(), pack_command(), cache_sim_command(),
  };
  for (const Command& command : commands) {
    Flags flags(*root.add_subcommand(command.name, command.summary));
    command.add_flags(flags);
  }

  std::vector<std::string> arguments = with_long_spellings(argc, argv, root);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  const auto chosen = [&]() -> CLI::App* {
    const std::vector<CLI::App*> parsed = root.get_subcommands();
    return parsed.empty() ? nullptr : parsed.front();
  };
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return print(root.help());  // of the command, when one was named
  } catch (const CLI::ParseError& error) {
    return report_parse_error(error, chosen() ? chosen()->get_name() : "");
  }
  if (version) return print(formatted("leanstream %s (%s)\n", leanstream_version(), kCommit));
  if (devices) return list_devices();
  for (const Command& command : commands)
    if (chosen() && chosen()->get_name() == command.name) return finish_log(command.run());
  return report_usage("no command (see leanstream -h)");
}

}  // namespace
}  // namespace leanstream::cli

int main(int argc, char** argv) {
  return leanstream::cli::main(argc, argv);
}
