#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace leanstream::reference {

// The twins of the vector kernels of kernels::Kernels: same contracts, formulas written out, everything in double, so
// that what differs is the kernel's rounding alone.

void rms_norm(const float* x, const float* weight, uint32_t n, float epsilon, float* out);
void add(float* x, const float* y, uint32_t n);
void glu(kernels::GluActivation activation, const float* gate, const float* up, uint32_t n, float* out);
void rope(kernels::RopeStyle style, const float* cos, const float* sin, uint32_t n_rot, float* x);

// In float like the kernel: the stored bytes are the same.
void store_kv(kernels::KvType type, const float* x, uint32_t head_dim, std::byte* out);
// out [head_dim] = one cached head vector.
void load_kv(kernels::KvType type, const std::byte* stored, uint32_t head_dim, float* out);

// All scores first, then softmax, then the weighted sum.
void attention(const kernels::AttentionTask& task);

int64_t argmax(const float* x, uint32_t n);
double log_sum_exp(const float* x, uint32_t n);

}  // namespace leanstream::reference
