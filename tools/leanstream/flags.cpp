#include "flags.h"

#include <algorithm>
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

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> items(1);
  for (const char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

// Applies a validator to each item of a list.
CLI::Validator each(const CLI::Validator& item_check) {
  return CLI::Validator(
      [item_check](const std::string& text) -> std::string {
        for (std::string& item : split_at_commas(text)) {
          if (item.empty()) return "'" + text + "' has an empty item";
          if (std::string why = item_check(item); !why.empty()) return why;
        }
        return "";
      },
      "");
}

CLI::Validator anything() {
  return CLI::Validator([](const std::string&) { return std::string(); }, "");
}

CLI::Validator word_or_number(std::vector<std::string> words, std::optional<int32_t> least) {
  return CLI::Validator(
      [words = std::move(words), least](const std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        int32_t number = 0;
        if (least && CLI::detail::lexical_cast(text, number) && number >= *least) return "";
        std::string accepted;
        for (const std::string& word : words) accepted += (accepted.empty() ? "" : ", ") + word;
        if (least) accepted += (accepted.empty() ? "" : " or ") + std::string("a number");
        if (least && *least > INT32_MIN) accepted += " from " + std::to_string(*least) + " on";
        return "'" + text + "' is not " + (words.empty() ? "" : "one of ") + accepted;
      },
      "");
}

}  // namespace

CLI::Option* Flags::placed(CLI::Option* option, const char* value) const {
  return option->option_text(value)->group(group_);
}
CLI::Option* Flags::last_counts(CLI::Option* option, const char* value) const {
  return placed(option, value)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Flags::flag(const std::string& names, bool& target, const std::string& help) {
  app_.add_flag(names, target, help)->group(group_);
}

void Flags::quiet(const std::string& name) {
  app_.add_flag(name)->group("");
}

void Flags::text(const std::string& names, const char* value, std::string& target, const std::string& help) {
  last_counts(app_.add_option(names, target, help), value);
}

void Flags::text(const std::string& names, const char* value, std::optional<std::string>& target,
                 const std::string& help) {
  last_counts(app_.add_option_function<std::string>(
                  names, [&target](const std::string& text) { target = text; }, help),
              value);
}

void Flags::choice(const std::string& names, const char* value, const std::vector<std::string>& choices,
                   std::string& target, const std::string& help) {
  last_counts(app_.add_option(names, target, help), value)->check(CLI::IsMember(choices));
}

void Flags::texts(const std::string& names, const char* value, std::vector<std::string>& target,
                  const std::string& help) {
  placed(app_.add_option(names, target, help), value)->allow_extra_args(false)->check(not_empty());
}

void Flags::list(const std::string& names, const char* value, std::vector<std::string>& target,
                 const std::string& help) {
  const auto take = [&target](const std::vector<std::string>& arguments) {
    target.clear();
    for (const std::string& argument : arguments)
      for (std::string& item : split_at_commas(argument)) target.push_back(std::move(item));
  };
  placed(app_.add_option_function<std::vector<std::string>>(names, take, help), value)
      ->allow_extra_args(false)
      ->check(each(anything()));
}

void Flags::list(const std::string& names, const char* value, std::vector<uint32_t>& target, uint32_t least,
                 uint32_t most, const std::string& help) {
  const auto take = [&target](const std::vector<std::string>& arguments) {
    target.clear();
    for (const std::string& argument : arguments)
      for (const std::string& item : split_at_commas(argument)) {
        target.emplace_back();
        CLI::detail::lexical_cast(item, target.back());  // checked
      }
  };
  placed(app_.add_option_function<std::vector<std::string>>(names, take, help), value)
      ->allow_extra_args(false)
      ->check(each(between(least, most)));
}

void Flags::number(const std::string& names, const char* value, uint32_t& target, uint32_t least, uint32_t most,
                   const std::string& help) {
  last_counts(app_.add_option(names, target, help), value)->check(between(least, most));
}

void Flags::number(const std::string& names, const char* value, int64_t& target, int64_t least, int64_t most,
                   const std::string& help) {
  last_counts(app_.add_option(names, target, help), value)->check(between(least, most));
}

void Flags::number(const std::string& names, const char* value, double& target, double least, double most,
                   const std::string& help) {
  last_counts(app_.add_option(names, target, help), value)->check(between(least, most));
}

void Flags::positional(const char* name, std::string& target, const std::string& help) {
  app_.add_option(name, target, help)->option_text(" ");
}

void Flags::without_effect(const std::string& names, const std::string& value, const Ignored& accepted,
                           std::vector<std::string>& given, const std::string& help) {
  const std::string name = names.substr(0, names.find(','));
  if (value.empty()) {
    app_.add_flag_callback(
            names, [name, &given] { given.push_back(name); }, help)
        ->group(group_);
    return;
  }
  CLI::Option* option = last_counts(app_.add_option_function<std::string>(
                                        names, [name, &given](const std::string&) { given.push_back(name); }, help),
                                    value.c_str());
  if (value.front() == '[') option->expected(0, 1);
  option->check(word_or_number(accepted.words, accepted.least));
}

void Flags::footer(const std::string& text) {
  app_.footer(text);
}

}  // namespace leanstream::cli
