#include "engine/scratch.h"

#include <algorithm>

#include "base/checked.h"

namespace leanstream::engine {
namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

// Calls take(pointer, elements) for every buffer, in order. bytes_for() counts with it, create() allocates: the two
// cannot disagree.
template <typename Take>
void Scratch::lay_out(const model::Config& config, const Shape& shape, Take&& take) {
  const uint64_t batch = shape.batch;
  const uint64_t d_model = config.d_model;
  const uint64_t q_width = uint64_t{config.n_heads} * config.head_dim;
  const uint64_t kv_width = uint64_t{config.n_kv_heads} * config.head_dim;
  const uint64_t widest = std::max<uint64_t>({d_model, q_width, config.d_ff});
  const uint64_t angles = config.ropes.size() * batch * (config.ropes[0].n_rot / 2);

  take(residual, batch * d_model);
  take(input, batch * std::max(d_model, q_width));
  const uint64_t q_size = batch * std::max(d_model, q_width);
  take(q, std::max(q_size + 2 * batch * kv_width, batch * config.d_ff));
  const auto after = [](float* buffer, uint64_t n) { return buffer == nullptr ? nullptr : buffer + n; };
  k = after(q, q_size);
  v = after(k, batch * kv_width);
  hidden = q;
  take(up, shape.threads * batch * kGluRows);
  take(q8, batch * widest);
  take(scale, batch * ceil_div(widest, 32));
  take(sum16, batch * ceil_div(widest, 16));
  take(cos, angles);
  take(sin, angles);
  take(logits, uint64_t{shape.logits} * config.n_vocab);
}

uint64_t Scratch::bytes_for(const model::Config& config, const Shape& shape) {
  Scratch none;
  uint64_t total = 0;
  none.lay_out(config, shape, [&]<typename T>(T*&, uint64_t n) { total += align_up(n * sizeof(T), kAlignment); });
  return total;
}

Result<Scratch> Scratch::create(const model::Config& config, const Shape& shape) {
  Result<MappedMemory> memory = MappedMemory::allocate(bytes_for(config, shape));
  if (!memory.ok()) return memory.status().with_context("cannot create a decoder");
  Scratch scratch;
  scratch.memory = std::move(*memory);
  std::byte* next = scratch.memory.data();
  scratch.lay_out(config, shape, [&]<typename T>(T*& buffer, uint64_t n) {
    buffer = reinterpret_cast<T*>(next);
    next += align_up(n * sizeof(T), kAlignment);
  });
  return scratch;
}

}  // namespace leanstream::engine
