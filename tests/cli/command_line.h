#pragma once

#include <string>
#include <vector>

#include "process.h"

namespace leanstream::test {

// The binary's path and `arguments`.
std::vector<std::string> leanstream(std::vector<std::string> arguments);
Outcome run_leanstream(std::vector<std::string> arguments, const ProcessOptions& options = {});

// Models of random weights, made once per build: llama-type with BOS, and qwen2-type with ChatML and without BOS added.
std::string tiny_model();
std::string tiny_chat_model();
// The repository's demo model: large enough that a signal finds it at work.
std::string demo_model();
bool have_demo_model();

// A folder of this test alone, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& contents) const;  // its path
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

// The lines of standard error that begin "leanstream: error: ".
std::vector<std::string> error_lines(const Outcome& outcome);

}  // namespace leanstream::test
