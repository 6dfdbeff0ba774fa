#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "gguf/reader.h"
#include "model/chat_template.h"
#include "model/config.h"
#include "model/tokenizer.h"
#include "model/weights.h"
#include "runtime/abort_hook.h"
#include "runtime/memory_plan.h"
#include "runtime/runtime.h"
#include "scheduler/streamer.h"

namespace leanstream::runtime {

// How much of a file is opened; each can do what the ones before it can.
enum class LoadMode { kMetadata = 0, kVocabulary = 1, kFull = 2 };

// Told how far opening has come, 0 to 1, never back; returning false cancels. May be empty.
struct Progress {
  bool (*report)(float fraction, void* user) = nullptr;
  void* user = nullptr;
};

// One model file, opened as far as its mode says, and the memory it holds of the runtime's budget. Immutable,
// thread-safe; borrows the runtime, outlives its sessions.
class OpenModel {
 public:
  // Checks the whole head, and that the model fits the budget, before it reads weights. Where they are streamed, room
  // stays for a session of shape `session`. chat_family: the family of chat template to use instead of the file's own;
  // "" = the file's. Errors: see leanstream_model_open.
  static Result<std::unique_ptr<OpenModel>> open(Runtime& runtime, const std::string& path, LoadMode mode,
                                                 const SessionShape& session, Progress progress,
                                                 const std::string& chat_family = {});

  Runtime& runtime() const { return runtime_; }
  LoadMode mode() const { return mode_; }
  const gguf::Model& file() const { return file_; }
  const std::string& path() const { return file_.path(); }

  // kUnsupported or kMalformed, as model::Config says, for a file that this library does not run.
  const Result<model::Config>& config() const { return config_; }

  // nullptr or nothing where the mode does not include it, or the file has none that we know.
  const model::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  const std::optional<model::ChatTemplate>& chat_template() const { return chat_template_; }
  const model::Weights* weights() const { return weights_ ? &*weights_ : nullptr; }

  // Where weights come from that are not resident; nullptr where all are.
  scheduler::Streamer* stream() const { return streamer_.get(); }

  // What running it would take beside all else that the budget holds now. Errors: those of config(), and
  // kInvalidArgument for a context above the model's or max_logits out of range.
  Result<MemoryPlan> plan(const SessionShape& shape, AbortHook abort = {}) const;

  // What requests suit the file's drive. A runtime's first call measures it, or finds what was measured before, where
  // the runtime has a state folder. Errors: kCancelled.
  Result<RequestShape> drive(AbortHook abort = {}) const;

  double load_ms() const { return load_ms_; }
  uint64_t bytes_read() const;  // from storage, since opening began

 private:
  OpenModel(Runtime& runtime, gguf::Model file, LoadMode mode);

  Result<MemoryPlan> plan_with(const SessionShape& shape, const RequestShape& drive) const;
  Status check_shape(const SessionShape& shape) const;
  Result<RequestShape> measure_drive(AbortHook abort) const;
  Status take_memory(const SessionShape& session, Progress progress);
  Status open_vocabulary(const std::string& chat_family);
  Status load_weights(Progress progress);
  void log_loaded() const;

  Runtime& runtime_;
  const LoadMode mode_;
  MemoryHold head_hold_;  // before what it pays for: given back once that is gone
  MemoryHold weights_hold_;
  const gguf::Model file_;
  const Result<model::Config> config_;
  std::unique_ptr<const model::Tokenizer> tokenizer_;
  std::optional<model::ChatTemplate> chat_template_;
  scheduler::StreamPlan stream_plan_;  // in LoadMode::kFull
  std::unique_ptr<scheduler::Streamer> streamer_;
  std::optional<model::Weights> weights_;
  double load_ms_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace leanstream::runtime
