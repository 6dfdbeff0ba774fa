#include "spellings.h"

#include <array>
#include <CLI/CLI.hpp>
#include <string_view>
#include <utility>

namespace leanstream::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kSpellings = {{
    {"-ngl", "--n-gpu-layers"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-fa", "--flash-attn"},
    {"-ub", "--ubatch-size"},
    {"-tb", "--threads-batch"},
    {"-bf", "--binary-file"},
    {"-lv", "--verbosity"},
    {"-lm", "--load-mode"},
    {"-dio", "--direct-io"},
    {"-ndio", "--no-direct-io"},
    {"-no-cnv", "--no-conversation"},
    {"-cnv", "--conversation"},
    {"-st", "--single-turn"},
    {"-sys", "--system-prompt"},
    {"-sysf", "--system-prompt-file"},
    {"-mli", "--multiline-input"},
    {"-hf", "--hf-repo"},
}};

}  // namespace

std::vector<std::string> with_long_spellings(int argc, char** argv, CLI::App& root) {
  std::vector<std::string> arguments;
  CLI::App* parser = &root;
  bool value_next = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const bool is_value = std::exchange(value_next, false);
    if (!is_value) {
      for (const auto& [from, to] : kSpellings)
        if (argument == from) argument = to;
      for (CLI::App* command : parser->get_subcommands(nullptr))
        if (command->get_name() == argument) parser = command;
      const CLI::Option* option = argument.starts_with("-") ? parser->get_option_no_throw(argument) : nullptr;
      value_next = option != nullptr && option->get_items_expected_min() > 0;
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace leanstream::cli
