#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "engine/weight_stream.h"
#include "gguf/reader.h"
#include "io/read_pool.h"
#include "scheduler/stream_plan.h"

namespace leanstream::scheduler {

struct StreamCounters {
  uint64_t bytes_read = 0;  // from the drive, whole blocks
  uint64_t wait_us = 0;     // during which at least one compute thread waited for a piece
};

// Brings the pieces of a plan to the engine, pass after pass, through a ring of slots: docs/streaming.md. Owns the
// ring, the files and the pool; creating it begins reading. Thread-safe as WeightStream says.
class Streamer final : public engine::WeightStream {
 public:
  // Makes a pool over files and the ring: io::ReadPool::create, or a test's own.
  using OpenPool = std::function<Result<std::unique_ptr<io::ReadPool>>(
      std::span<const io::StorageFile> files, std::span<std::byte> arena, const io::PoolParams& params)>;

  // `embedding` is the table whose rows come by demand, or nullptr. Errors: kIo, and those of io::ReadPool::create.
  static Result<std::unique_ptr<Streamer>> create(const gguf::Model& file, const gguf::TensorInfo* embedding,
                                                  StreamPlan plan, const io::PoolParams& pool,
                                                  const OpenPool& open_pool = io::ReadPool::create);
  // No pass may be under way. Memory that the kernel still writes to is left to it.
  ~Streamer() override;

  Status begin_pass() override;
  Status end_pass(bool complete) override;
  const std::byte* acquire(uint32_t piece, StopFunction stop, void* stop_user) override;
  void release(uint32_t piece) override;
  std::byte* workspace(uint32_t worker, uint32_t which) override;
  bool read_embedding(int32_t token, std::byte* row) override;
  Status status() const override;

  const StreamPlan& plan() const { return plan_; }
  StreamCounters counters() const;
  io::PoolFacts facts() const;

 private:
  // What the kernel may write to: outlives the pool, and everything where the kernel does not give it back.
  struct Ring {
    MappedMemory memory;
    std::vector<io::StorageFile> files;
    std::vector<io::ArrivalFlag> flags;  // one per slot
  };

  Streamer(const gguf::Model& file, const gguf::TensorInfo* embedding, StreamPlan plan);
  io::Read read_of(uint64_t number) const;
  uint32_t slot_of(uint64_t number) const { return static_cast<uint32_t>(number % plan_.slots); }
  uint32_t fill_of(uint64_t number) const { return static_cast<uint32_t>(number / plan_.slots + 1); }
  uint32_t piece_of(uint64_t number) const;
  void read_ahead(uint64_t number);
  Status check_files();
  Status start_over();
  void fail(Status status);
  void wait_begins();
  void wait_ends();

  const gguf::Model& file_;
  const gguf::TensorInfo* const embedding_;
  const StreamPlan plan_;
  std::unique_ptr<Ring> ring_;
  MappedMemory workspaces_;
  std::unique_ptr<io::ReadPool> pool_;
  uint64_t deadline_us_ = 0;

  std::mutex pass_mutex_;      // held from begin_pass to end_pass
  uint64_t first_number_ = 0;  // of the pass under way, or of the next one
  uint64_t origin_ = 0;        // a number that is a piece 0: where the ring last started over
  uint32_t generation_ = 0;    // of reads: one more each time the ring starts over
  bool broken_off_ = false;    // the last pass was: its reads are of no use

  mutable std::mutex mutex_;  // of what follows; taken only to wait and to fail
  Status failure_;
  uint32_t waiting_ = 0;
  uint64_t waiting_since_us_ = 0, wait_us_ = 0;
  std::atomic<uint64_t> embedding_bytes_{0};
};

}  // namespace leanstream::scheduler
