#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leanstream::test {

// How a process ended and what it said.
struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it, or the test's patience
  int signal = 0;
  bool timed_out = false;
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::string input = {};        // to standard input, which then ends
  std::string stdin_path = {};   // instead: a file
  std::string stdout_path = {};  // instead of being collected: a file
  bool close_stdout = false;
  bool terminal = false;  // all three on one pseudo-terminal; what it shows is in `out`; `input` is typed
};

// A running program. Its output is collected whenever the test waits for something. Killed when the object goes.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Of either stream. False when the time is up or the program ended without it.
  bool wait_for_output(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(60));
  void send_signal(int signal);
  void type(std::string_view text);  // on the terminal
  void close_output();               // the reading end of its standard output

  Outcome finish(std::chrono::milliseconds patience = std::chrono::seconds(120));

  const std::string& out() const { return outcome_.out; }

 private:
  bool collect(std::chrono::milliseconds patience);  // false when both streams have ended

  int pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string input_;
  Outcome outcome_;
};

Outcome run_process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace leanstream::test
