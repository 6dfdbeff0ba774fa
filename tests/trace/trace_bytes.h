#pragma once

#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "trace/block.h"
#include "trace/header.h"
#include "trace/trace_writer.h"

namespace leanstream::trace {

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline std::string block(const std::string& payload) {
  std::string out;
  append_varint(out, payload.size());
  out += payload;
  append_checksum(out, as_bytes(payload));
  return out;
}

inline std::string varints(std::initializer_list<uint64_t> values) {
  std::string out;
  for (const uint64_t value : values) append_varint(out, value);
  return out;
}

// Three layers of 100, 7 and 0 pieces.
inline Header small_header() {
  return {"a model", "neuron", "top 0.2 by importance", {{{60, 10}, {40, 12}}, {{7, 5}}, {}}};
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A path of this process alone, removed with the object.
class ScratchPath {
 public:
  explicit ScratchPath(const std::string& name) : path_("./" + name + "-" + std::to_string(::getpid())) {}
  ScratchPath(const ScratchPath&) = delete;
  ScratchPath& operator=(const ScratchPath&) = delete;
  ~ScratchPath() {
    ::unlink(path_.c_str());
    ::unlink(temporary().c_str());
  }
  const std::string& path() const { return path_; }
  std::string temporary() const { return path_ + ".tmp-" + std::to_string(::getpid()); }

 private:
  std::string path_;
};

// Sets for `tokens` tokens: of every density from none to all, scattered and in runs.
inline std::vector<std::vector<std::vector<bool>>> random_sets(const Header& header, size_t tokens, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::vector<bool>>> all(tokens);
  for (auto& token : all)
    for (const auto& layer : header.layers) {
      const uint32_t density = random() % 5, stickiness = random() % 3;
      std::vector<bool> set(piece_count(layer));
      bool last = false;
      for (size_t i = 0; i < set.size(); ++i) {
        if (i == 0 || random() % 8 >= stickiness * 3) last = random() % 4 < density;
        set[i] = last;
      }
      token.push_back(std::move(set));
    }
  return all;
}

inline std::vector<uint64_t> bitmap_of(const std::vector<bool>& set) {
  std::vector<uint64_t> words((set.size() + 63) / 64);
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i]) words[i / 64] |= uint64_t{1} << (i % 64);
  return words;
}

inline Status write_sets(TraceWriter& writer, const std::vector<std::vector<std::vector<bool>>>& sets) {
  for (const auto& token : sets) {
    for (const auto& layer : token) writer.add_layer(bitmap_of(layer));
    if (Status status = writer.end_token(); !status.ok()) return status;
  }
  return {};
}

}  // namespace leanstream::trace
