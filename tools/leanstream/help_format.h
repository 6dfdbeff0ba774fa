#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace leanstream::cli {

// CLI11's help with one empty line between groups, and without the "{false}" that it puts behind a --no-flag.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(34); }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    if (const size_t at = name.find("{false}"); at != std::string::npos) name.erase(at, 7);
    return name;
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    const std::string text = CLI::Formatter::make_group(group, is_positional, options);
    if (is_positional && !text.empty()) return text.substr(1) + "\n";
    return text.starts_with("\n") ? text.substr(1) : text;
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return CLI::Formatter::make_usage(app, name) + "\n";
  }
};

}  // namespace leanstream::cli
