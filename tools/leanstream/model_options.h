#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "flags.h"
#include "handles.h"
#include "log.h"

namespace leanstream::cli {

// Where users' programs keep what they find out: $XDG_STATE_HOME/leanstream, or ~/.local/state/leanstream. "" where
// neither is set.
std::string default_state_dir();

// The flags of everything that computes with a model.
struct ModelOptions {
  std::string model;
  std::string memory;  // as parse_size takes it; "" = what is available, less 10 %
  std::string backend = "auto";
  std::string simd;
  std::string chat_template;                    // a family's name; "" = the file's own
  std::string emulate_storage;                  // "" = the drive as it is
  std::string state_dir = default_state_dir();  // "" = drives are not measured
  std::string io = "auto";
  uint32_t threads = 0;
  std::vector<std::string> without_effect;  // flags of llama.cpp that were given and mean nothing here
  LogOptions log;
};

struct ContextOptions {
  uint32_t context = 0;                       // 0 = chosen
  std::string kv_type, kv_type_k, kv_type_v;  // "f16", "q8_0", or "" where not given
};

// -ngl, --mmap and the like: taken from scripts for llama.cpp, said to be without effect.
void add_llama_cpp_flags(Flags& flags, std::vector<std::string>& given);
void say_without_effect(const std::vector<std::string>& given);
void add_model_options(Flags& flags, ModelOptions& options);
// Parts of it, for a command that has lists where others have one value.
void add_storage_options(Flags& flags, ModelOptions& options);
void add_comparing_options(Flags& flags, ModelOptions& options);
void add_context_options(Flags& flags, ContextOptions& options);

// What no single flag can tell: the model is named, the size is one, the types agree.
Status check_usage(const ModelOptions& options);
Status check_usage(const ContextOptions& options);

Result<Runtime> create_runtime(const ModelOptions& options);

// session: which one the budget leaves room for where weights are streamed; may be nullptr. chat_template: as of
// ModelOptions.
Result<Model> open_model(leanstream_runtime& runtime, const std::string& path, leanstream_load_mode mode,
                         const leanstream_session_params* session = nullptr, const std::string& chat_template = {});

leanstream_session_params session_params(const ContextOptions& options);

// "the model does not fit ...", with every number.
Status does_not_fit(const leanstream_plan& plan);

struct LoadedModel {
  Runtime runtime;
  Model model;
  Session session;
  leanstream_plan plan;
};

// Checks what the command still needs from the vocabulary and the plan, before a weight is read.
using EarlyCheck = std::function<Status(const leanstream_model& model, const leanstream_plan& plan)>;

// Runtime, model and session, in this order: the plan, the early check, and only then the weights. Interrupts cancel.
Result<LoadedModel> load_model(const ModelOptions& options, const ContextOptions& context, const EarlyCheck& check);

}  // namespace leanstream::cli
