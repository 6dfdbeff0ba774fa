#include "flags.h"

#include <CLI/CLI.hpp>

#include "text.h"

namespace leanstream::cli {
namespace {

// CLI::Range lets "nan" pass.
template <typename Number>
CLI::Validator between(Number least, Number most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        Number value{};
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
        return formatted("%s is not a number from %s to %s", text.c_str(), CLI::detail::to_string(least).c_str(),
                         CLI::detail::to_string(most).c_str());
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& text) -> std::string { return text.empty() ? "it is empty" : ""; }, "");
}

}  // namespace

CLI::Option* Flags::placed(CLI::Option* option, const char* value) const {
  return option->option_text(value)->group(group_);
}

void Flags::flag(const std::string& names, bool& target, const std::string& help) {
  app_.add_flag(names, target, help)->group(group_);
}

void Flags::quiet(const std::string& name) {
  app_.add_flag(name)->group("");
}

void Flags::text(const std::string& names, const char* value, std::string& target, const std::string& help) {
  placed(app_.add_option(names, target, help), value);
}

void Flags::text(const std::string& names, const char* value, std::optional<std::string>& target,
                 const std::string& help) {
  placed(app_.add_option_function<std::string>(
             names, [&target](const std::string& text) { target = text; }, help),
         value);
}

void Flags::choice(const std::string& names, const char* value, const std::vector<std::string>& choices,
                   std::string& target, const std::string& help) {
  placed(app_.add_option(names, target, help), value)->check(CLI::IsMember(choices));
}

void Flags::texts(const std::string& names, const char* value, std::vector<std::string>& target,
                  const std::string& help) {
  placed(app_.add_option(names, target, help), value)->allow_extra_args(false)->check(not_empty());
}

void Flags::list(const std::string& names, const char* value, std::vector<std::string>& target,
                 const std::string& help) {
  placed(app_.add_option(names, target, help), value)->allow_extra_args(false)->delimiter(',');
}

void Flags::list(const std::string& names, const char* value, std::vector<uint32_t>& target, uint32_t least,
                 uint32_t most, const std::string& help) {
  placed(app_.add_option(names, target, help), value)
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(between(least, most));
}

void Flags::number(const std::string& names, const char* value, uint32_t& target, uint32_t least, uint32_t most,
                   const std::string& help) {
  placed(app_.add_option(names, target, help), value)->check(between(least, most));
}

void Flags::number(const std::string& names, const char* value, int64_t& target, int64_t least, int64_t most,
                   const std::string& help) {
  placed(app_.add_option(names, target, help), value)->check(between(least, most));
}

void Flags::number(const std::string& names, const char* value, double& target, double least, double most,
                   const std::string& help) {
  placed(app_.add_option(names, target, help), value)->check(between(least, most));
}

void Flags::positional(const char* name, std::string& target, const std::string& help) {
  app_.add_option(name, target, help)->option_text(" ");
}

void Flags::without_effect(const std::string& names, const std::string& value, std::vector<std::string>& given,
                           const std::string& help, bool positive) {
  const std::string name = names.substr(0, names.find(','));
  if (value.empty()) {
    app_.add_flag_callback(
            names, [name, &given] { given.push_back(name); }, help)
        ->group(group_);
    return;
  }
  CLI::Option* option = placed(app_.add_option_function<std::string>(
                                   names, [name, &given](const std::string&) { given.push_back(name); }, help),
                               value.c_str());
  if (value.front() == '[') option->expected(0, 1);
  if (positive) option->check(between(int64_t{1}, int64_t{INT32_MAX}));
}

void Flags::footer(const std::string& text) {
  app_.footer(text);
}

}  // namespace leanstream::cli
