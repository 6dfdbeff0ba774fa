#include "scheduler/streamer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "io/clock.h"

namespace leanstream::scheduler {

Result<std::unique_ptr<Streamer>> Streamer::create(const gguf::Model& file, const gguf::TensorInfo* embedding,
                                                   StreamPlan plan, const io::PoolParams& pool_params,
                                                   const OpenPool& open_pool) {
  std::unique_ptr<Streamer> streamer(new Streamer(file, embedding, std::move(plan)));
  Ring& ring = *streamer->ring_;
  for (const File& part : file.files()) {
    Result<io::StorageFile> storage = io::StorageFile::open(part.path());
    if (!storage.ok()) return storage.status();
    if (storage->size_bytes() != part.size_bytes() || !storage->is_same_as(part.descriptor()))
      return Status(Code::kIo, "cannot stream " + part.path() + ": it changed while it was opened");
    ring.files.push_back(*std::move(storage));
  }
  if (streamer->plan_.pieces.empty()) return streamer;

  Result<MappedMemory> memory = MappedMemory::allocate(streamer->plan_.ring_bytes());
  if (!memory.ok()) return memory.status().with_context("cannot allocate the ring for streamed weights");
  ring.memory = *std::move(memory);
  Result<MappedMemory> workspaces = MappedMemory::allocate(streamer->plan_.workspace_bytes);
  if (!workspaces.ok()) return workspaces.status().with_context("cannot allocate workspaces for streamed weights");
  streamer->workspaces_ = *std::move(workspaces);
  ring.flags = std::vector<io::ArrivalFlag>(streamer->plan_.slots);
  io::PoolParams params = pool_params;
  params.capacity = streamer->plan_.slots + 1;
  Result<std::unique_ptr<io::ReadPool>> pool =
      open_pool(ring.files, {ring.memory.data(), ring.memory.size_bytes()}, params);
  if (!pool.ok()) return pool.status().with_context("cannot stream weights");
  streamer->pool_ = *std::move(pool);
  streamer->deadline_us_ = params.deadline_us;
  for (uint64_t number = 0; number < streamer->plan_.slots; ++number) streamer->read_ahead(number);
  return streamer;
}

Streamer::Streamer(const gguf::Model& file, const gguf::TensorInfo* embedding, StreamPlan plan)
    : file_(file), embedding_(embedding), plan_(std::move(plan)), ring_(std::make_unique<Ring>()) {}

Streamer::~Streamer() {
  if (pool_ == nullptr) return;
  const bool quiet = pool_->quiesce(deadline_us_);
  pool_.reset();
  if (!quiet) static_cast<void>(ring_.release());
}

uint32_t Streamer::piece_of(uint64_t number) const {
  return static_cast<uint32_t>((number - origin_) % plan_.pieces.size());
}

io::Read Streamer::read_of(uint64_t number) const {
  const Piece& piece = plan_.pieces[piece_of(number)];
  const io::StorageFile& file = ring_->files[piece.file];
  const uint64_t begin = piece.offset / kSlotAlignment * kSlotAlignment;
  const uint64_t end = piece.offset + piece.size_bytes;
  const uint32_t slot = slot_of(number);
  io::Read read;
  read.file = piece.file;
  read.offset = begin;
  read.needed = static_cast<uint32_t>(end - begin);
  read.size = file.direct() ? static_cast<uint32_t>(align_up(end, kSlotAlignment) - begin) : read.needed;
  read.buffer = ring_->memory.data() + slot * plan_.slot_bytes;
  read.generation = generation_;
  read.flag = &ring_->flags[slot];
  read.fill = fill_of(number);
  return read;
}

void Streamer::read_ahead(uint64_t number) {
  const io::Read read = read_of(number);
  pool_->submit({&read, 1});
}

Status Streamer::begin_pass() {
  pass_mutex_.lock();
  Status status = check_files();
  if (status.ok() && broken_off_) {
    status = start_over();
    if (!status.ok()) fail(status);
  }
  if (!status.ok()) pass_mutex_.unlock();
  return status;
}

Status Streamer::end_pass(bool complete) {
  broken_off_ = !complete;
  first_number_ += plan_.pieces.size();
  Status status = check_files();
  pass_mutex_.unlock();
  return status;
}

Status Streamer::check_files() {
  Status status = this->status();
  if (!status.ok()) return status;
  for (size_t i = 0; i < ring_->files.size() && status.ok(); ++i) status = ring_->files[i].check_unchanged();
  if (!status.ok()) fail(status);
  return status;
}

// Reads of the pass that was broken off are in the queue and under way, some into slots that the new one fills first.
Status Streamer::start_over() {
  if (pool_ == nullptr) return {};
  pool_->drop_before(++generation_);
  if (!pool_->quiesce(deadline_us_))
    return {Code::kDeadline, "reads of a pass that was cancelled did not come back within " +
                                 std::to_string(deadline_us_ / 1'000'000) + " s"};
  if (Status status = pool_->status(); !status.ok()) return status;
  // Above every number that was ever read, and the first of a round: no filling comes twice.
  origin_ = align_up(first_number_ + plan_.slots, plan_.slots);
  first_number_ = origin_;
  for (uint32_t i = 0; i < plan_.slots; ++i) read_ahead(origin_ + i);
  broken_off_ = false;
  return {};
}

const std::byte* Streamer::acquire(uint32_t piece, StopFunction stop, void* stop_user) {
  const uint64_t number = first_number_ + piece;
  const uint32_t slot = slot_of(number);
  const io::ArrivalFlag& flag = ring_->flags[slot];
  if (flag.filled.load(std::memory_order_acquire) != fill_of(number)) {
    wait_begins();
    Status status = pool_->wait(flag, fill_of(number), stop, stop_user);
    wait_ends();
    if (!status.ok()) {
      if (status.code() != Code::kCancelled) fail(std::move(status));
      return nullptr;
    }
  }
  return ring_->memory.data() + slot * plan_.slot_bytes + plan_.pieces[piece].offset % kSlotAlignment;
}

void Streamer::release(uint32_t piece) {
  read_ahead(first_number_ + piece + plan_.slots);
}

std::byte* Streamer::workspace(uint32_t worker, uint32_t which) {
  return workspaces_.data() + (2 * worker + which) * plan_.slot_bytes;
}

bool Streamer::read_embedding(int32_t token, std::byte* row) {
  const uint64_t row_bytes = embedding_->size_bytes / embedding_->dims[1];
  Status status = file_.read_tensor(*embedding_, static_cast<uint64_t>(token) * row_bytes, {row, row_bytes});
  embedding_bytes_.fetch_add(row_bytes, std::memory_order_relaxed);
  if (status.ok()) return true;
  fail(std::move(status));
  return false;
}

Status Streamer::status() const {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
  }
  return pool_ == nullptr ? Status() : pool_->status();
}

void Streamer::fail(Status status) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(status);
}

void Streamer::wait_begins() {
  const std::lock_guard lock(mutex_);
  if (waiting_++ == 0) waiting_since_us_ = io::now_us();
}

void Streamer::wait_ends() {
  const std::lock_guard lock(mutex_);
  if (--waiting_ == 0) wait_us_ += io::now_us() - waiting_since_us_;
}

StreamCounters Streamer::counters() const {
  StreamCounters counters;
  counters.bytes_read = embedding_bytes_.load(std::memory_order_relaxed);
  if (pool_ != nullptr) counters.bytes_read += pool_->counters().bytes;
  const std::lock_guard lock(mutex_);
  counters.wait_us = wait_us_;
  return counters;
}

io::PoolFacts Streamer::facts() const {
  return pool_ == nullptr ? io::PoolFacts{} : pool_->facts();
}

}  // namespace leanstream::scheduler
