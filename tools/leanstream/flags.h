#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace leanstream::cli {

// The flags of one command: where each value goes and what -h says of it. A thin face of CLI11, which costs seconds of
// compile time in every file that sees it. `names` is a comma-separated list, long names first where a sentence should
// use them; `value` is what -h calls the value. Targets outlive the parser and keep their value when the flag is
// absent.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  // The heading in -h under which the flags added next stand; "" hides them. First "Options".
  void group(const std::string& heading) { group_ = heading; }

  // A name behind '!' sets the target to false.
  void flag(const std::string& names, bool& target, const std::string& help);
  // Takes the flag and forgets it.
  void quiet(const std::string& name);

  void text(const std::string& names, const char* value, std::string& target, const std::string& help);
  void text(const std::string& names, const char* value, std::optional<std::string>& target, const std::string& help);
  void choice(const std::string& names, const char* value, const std::vector<std::string>& choices, std::string& target,
              const std::string& help);
  // May be given again; none empty.
  void texts(const std::string& names, const char* value, std::vector<std::string>& target, const std::string& help);
  // Commas separate, and it may be given again.
  void list(const std::string& names, const char* value, std::vector<std::string>& target, const std::string& help);
  void list(const std::string& names, const char* value, std::vector<uint32_t>& target, uint32_t least, uint32_t most,
            const std::string& help);

  // From `least` to `most`, NaN excluded.
  void number(const std::string& names, const char* value, uint32_t& target, uint32_t least, uint32_t most,
              const std::string& help);
  void number(const std::string& names, const char* value, int64_t& target, int64_t least, int64_t most,
              const std::string& help);
  void number(const std::string& names, const char* value, double& target, double least, double most,
              const std::string& help);

  // A word without a flag.
  void positional(const char* name, std::string& target, const std::string& help);

  // A flag that has no effect here: its first name is added to `given`. `value` empty: it takes none; in brackets: it
  // may take one. A number of 0 is refused where `positive`.
  void without_effect(const std::string& names, const std::string& value, std::vector<std::string>& given,
                      const std::string& help, bool positive = false);

  // Shown below the flags.
  void footer(const std::string& text);

 private:
  CLI::Option* placed(CLI::Option* option, const char* value) const;

  CLI::App& app_;
  std::string group_ = "Options";
};

}  // namespace leanstream::cli
