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

// The flags of one command: where each value goes and what -h says of it. Of a flag that is given again the last
// counts, except where its function says otherwise. A thin face of CLI11, which costs seconds of compile time in every
// file that sees it. `names` is a comma-separated list, long names first where a sentence should use them; `value` is
// what -h calls the value. Targets outlive the parser and keep their value when the flag is absent.
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
  // Commas separate, and it may be given again; no item is empty.
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

  // What the value of a flag without effect may be: one of the words, or a number from `least` on where there is one.
  struct Ignored {
    std::vector<std::string> words;
    std::optional<int32_t> least;
  };
  // A flag that has no effect here, and must make sense all the same: its first name is added to `given`. `value`
  // empty: it takes none; in brackets: it may take one.
  void without_effect(const std::string& names, const std::string& value, const Ignored& accepted,
                      std::vector<std::string>& given, const std::string& help);

  // Shown below the flags.
  void footer(const std::string& text);

 private:
  CLI::Option* placed(CLI::Option* option, const char* value) const;
  CLI::Option* last_counts(CLI::Option* option, const char* value) const;  // the same

  CLI::App& app_;
  std::string group_ = "Options";
};

}  // namespace leanstream::cli
