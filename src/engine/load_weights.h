#pragma once

#include "base/status.h"
#include "engine/residency.h"
#include "engine/worker_team.h"
#include "gguf/reader.h"
#include "kernels/cpu/kernels.h"
#include "model/config.h"
#include "model/weights.h"

namespace leanstream::engine {

// Bytes that load_weights will map: every matrix in panel layout (rows padded to 16), norms and biases as f32. The
// token embedding stays in file layout, unless it is also the output.
Result<uint64_t> resident_weight_bytes(const gguf::Model& file, const model::Config& config,
                                       const Residency& residency = {});

// Reads the resident weights into memory, interleaving matrices into panels as they arrive (all workers read and pack).
// Checks every tensor's presence, shape and type first; tiles of a pack are checked against their checksums.
// `progress(fraction, user)` is called by the calling thread, at least every 50 ms; false cancels. Errors: kMalformed /
// kUnsupported naming the tensor, kIo, kCancelled.
Result<model::Weights> load_weights(const gguf::Model& file, const model::Config& config, const Residency& residency,
                                    const kernels::Kernels& kernels, WorkerTeam& team, bool (*progress)(float, void*),
                                    void* progress_user);

}  // namespace leanstream::engine
