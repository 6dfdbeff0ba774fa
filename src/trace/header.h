#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace leanstream::trace {

// So many pieces, one after another, of so many bytes each.
struct SizeRun {
  uint32_t count = 0;
  uint32_t bytes = 0;
};

// What a trace is about. Pieces are numbered through all layers, in order; within a layer, runs of them have one size.
struct Header {
  std::string model;      // its name, for people
  std::string pieces;     // what a piece is: "neuron", "tile of 32 neurons"
  std::string selection;  // which of them a token demands: "all", "top 0.2 by importance"
  std::vector<std::vector<SizeRun>> layers;
};

inline constexpr uint32_t kMaxLayers = 1u << 16;
inline constexpr uint32_t kMaxPieces = 1u << 26;  // of all layers together
inline constexpr size_t kMaxTextBytes = 4096;

uint32_t piece_count(std::span<const SizeRun> layer);
uint32_t piece_count(const Header& header);
std::vector<uint32_t> piece_bytes(const Header& header);  // [piece_count]
uint64_t total_bytes(const Header& header);

// Errors: kInvalidArgument naming the limit that it breaks.
Status check(const Header& header);

// check() passes for what is encoded, and for what comes back. Errors of decoding: kMalformed.
std::string encode(const Header& header);
Result<Header> decode_header(std::span<const std::byte> bytes);

}  // namespace leanstream::trace
