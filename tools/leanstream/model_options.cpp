#include "model_options.h"

#include <cstdlib>

#include "base/units.h"
#include "interrupt.h"
#include "io/storage_model.h"
#include "progress.h"
#include "text.h"

namespace leanstream::cli {
namespace {

uint64_t file_bytes_of(const std::string& path, Status& status) {
  auto params = with_size<leanstream_runtime_params>();
  leanstream_runtime_params_init(&params);
  params.threads = 1;
  leanstream_runtime* raw = nullptr;
  status = checked([&](leanstream_error* e) { return leanstream_runtime_create(&params, &raw, e); });
  const Runtime runtime(raw);
  if (!status.ok()) return 0;
  const Result<Model> model = open_model(*runtime, path, LEANSTREAM_LOAD_METADATA);
  if (!model.ok()) {
    status = model.status();
    return 0;
  }
  const Result<leanstream_model_info> info = model_info(**model);
  status = info.status();
  return info.ok() ? info->file_bytes : 0;
}

// Bytes of --memory; 0 when it was not given.
Result<uint64_t> budget_bytes(const ModelOptions& options) {
  if (options.memory.empty()) return uint64_t{0};
  uint64_t whole = 0;
  if (options.memory.find('%') != std::string::npos) {
    Status status;
    whole = file_bytes_of(options.model, status);
    if (!status.ok()) return status;
  }
  return parse_size(options.memory, whole);
}

// One line on what was chosen where the user said nothing.
void say_choices(const ModelOptions& options, const ContextOptions& context, const leanstream_plan& plan,
                 const leanstream_model_info& info) {
  std::string line;
  if (options.memory.empty())
    line = "memory budget " + format_bytes(plan.budget_bytes) + " (what is available, less 10 %; --memory sets it)";
  if (context.context == 0)
    line += formatted("%scontext %u positions (the model's limit is %u; -c sets it)", line.empty() ? "" : ", ",
                      plan.context, info.context_length);
  if (!line.empty()) log_info(line);
}

}  // namespace

std::string default_state_dir() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/')
    return std::string(state) + "/leanstream";
  const char* home = std::getenv("HOME");
  return home == nullptr || home[0] != '/' ? "" : std::string(home) + "/.local/state/leanstream";
}

void add_llama_cpp_flags(Flags& flags, std::vector<std::string>& given) {
  const char* loading = "Weights are read into the process's own memory";
  const Flags::Ignored any_number{{}, INT32_MIN}, positive{{}, 1};
  flags.group("Accepted from scripts for llama.cpp, without effect");
  flags.without_effect("--n-gpu-layers,--gpu-layers", "N", {{"auto", "all"}, INT32_MIN}, given,
                       "Computes on the CPU (also -ngl)");
  for (const char* name : {"--mmap", "--no-mmap", "--mlock", "--direct-io", "--no-direct-io"})
    flags.without_effect(name, "", {}, given, loading);
  flags.without_effect("--load-mode", "MODE", {{"auto", "none", "mmap", "mlock", "mmap+mlock", "dio"}, {}}, given,
                       loading);
  flags.without_effect("--threads-batch", "N", any_number, given, "Prefill uses the threads of -t (also -tb)");
  flags.without_effect("--batch-size,-b", "N", positive, given, "Prefill goes in chunks of a fixed length");
  flags.without_effect("--ubatch-size", "N", positive, given, "The same (also -ub)");
  flags.without_effect("--flash-attn", "[on|off|auto]",
                       {{"on", "off", "auto", "enabled", "disabled", "true", "false", "1", "0", "-1"}, {}}, given,
                       "Attention never stores its scores (also -fa)");
}

void say_without_effect(const std::vector<std::string>& flags) {
  if (flags.empty()) return;
  std::string list;
  for (const std::string& flag : flags) list += (list.empty() ? "" : ", ") + flag;
  log_note("without effect here (see -h): " + list);
}

void add_model_options(Flags& flags, ModelOptions& options) {
  flags.group("Model and machine");
  flags.text("-m,--model", "FILE", options.model, "GGUF file; of a split set, its first part");
  flags.text("--memory", "SIZE", options.memory,
             "Hard cap on what the process holds: 2G, 800M, or 60%\n"
             "of the model file (default: what is available, less 10 %)");
  flags.choice("--backend", "NAME", {"auto", "cpu", "cuda"}, options.backend,
               "Where to compute: auto, cpu, cuda (default auto)");
  flags.number("-t,--threads", "N", options.threads, 1, 256, "Compute threads (default: one per core)");
  add_storage_options(flags, options);
  add_log_options(flags, options.log);
  add_llama_cpp_flags(flags, options.without_effect);
  flags.group("For comparing");
  add_comparing_options(flags, options);
}

void add_storage_options(Flags& flags, ModelOptions& options) {
  flags.text("--emulate-storage", "MODEL", options.emulate_storage,
             "Read no faster than this drive when weights are\nstreamed: 2.0GB/s@64K:3.5GB/s@256K,lat=90us");
  flags.text(
      "--state-dir", "DIR", options.state_dir,
      "Where a drive's measured bandwidth is kept; \"\" = measure\nnothing (default: $XDG_STATE_HOME/leanstream)");
}

void add_comparing_options(Flags& flags, ModelOptions& options) {
  flags.text("--simd", "NAME", options.simd, "SIMD target: avx512vnni, avx2, neon-dotprod, portable");
  flags.choice("--io", "NAME", {"auto", "io_uring", "pread"}, options.io,
               "What streams weights: auto, io_uring, pread");
}

void add_context_options(Flags& flags, ContextOptions& options) {
  flags.group("Context");
  flags.number(
      "-c,--ctx-size", "N", options.context, 0, UINT32_MAX,
      "Positions that the KV cache holds; 0 = the least of the\nmodel's, 4096 and what the budget allows (default 0)");
  const auto add_type = [&](const char* name, std::string& type, const char* text) {
    flags.choice(name, "TYPE", {"f16", "q8_0"}, type, text);
  };
  add_type("--kv-type", options.kv_type, "KV cache: f16 or q8_0 (default f16)");
  add_type("--cache-type-k", options.kv_type_k, "llama.cpp's name for the same (also -ctk); must agree");
  add_type("--cache-type-v", options.kv_type_v, "llama.cpp's name for the same (also -ctv); must agree");
}

Status check_usage(const ModelOptions& options) {
  if (options.model.empty()) return invalid_argument("no model: give -m FILE");
  if (!options.emulate_storage.empty()) {
    const Result<io::StorageModel> drive = io::StorageModel::parse(options.emulate_storage);
    if (!drive.ok()) return drive.status().with_context("--emulate-storage");
  }
  if (options.memory.empty()) return {};
  const Result<uint64_t> bytes = parse_size(options.memory, 1000);
  if (!bytes.ok()) return bytes.status().with_context("--memory");
  if (*bytes == 0) return invalid_argument("--memory " + options.memory + ": a budget of nothing");
  return {};
}

Status check_usage(const ContextOptions& options) {
  const std::string& k = options.kv_type_k;
  const std::string& v = options.kv_type_v;
  const std::string type = options.kv_type.empty() ? k.empty() ? v : k : options.kv_type;
  const bool one_given = k.empty() != v.empty();
  if (one_given && type == "q8_0")
    return invalid_argument("--cache-type-k and --cache-type-v must agree: the KV cache has one type");
  if ((!k.empty() && k != type) || (!v.empty() && v != type))
    return invalid_argument("the KV cache has one type: --kv-type, --cache-type-k and --cache-type-v must agree");
  return {};
}

Result<Runtime> create_runtime(const ModelOptions& options) {
  if (options.backend == "cuda") return unsupported("--backend cuda: this build has no CUDA; it computes on the CPU");
  const Result<uint64_t> budget = budget_bytes(options);
  if (!budget.ok()) return budget.status();
  auto params = with_size<leanstream_runtime_params>();
  leanstream_runtime_params_init(&params);
  params.memory_budget_bytes = *budget;
  params.threads = options.threads;
  params.simd = options.simd.empty() ? nullptr : options.simd.c_str();
  params.log = log_from_library;
  params.state_dir = options.state_dir.empty() ? nullptr : options.state_dir.c_str();
  params.emulate_storage = options.emulate_storage.empty() ? nullptr : options.emulate_storage.c_str();
  params.io = options.io.c_str();
  const SignalsBlocked workers_leave_signals_alone;
  leanstream_runtime* runtime = nullptr;
  Status status = checked([&](leanstream_error* e) { return leanstream_runtime_create(&params, &runtime, e); });
  if (!status.ok()) return status;
  return Runtime(runtime);
}

Result<Model> open_model(leanstream_runtime& runtime, const std::string& path, leanstream_load_mode mode,
                         const leanstream_session_params* session, const std::string& chat_template) {
  ProgressBar bar("loading");
  auto params = with_size<leanstream_model_params>();
  leanstream_model_params_init(&params);
  params.mode = mode;
  params.session = session;
  if (!chat_template.empty()) params.chat_template = chat_template.c_str();
  if (mode == LEANSTREAM_LOAD_FULL) {
    params.progress = ProgressBar::from_library;
    params.progress_user = &bar;
  }
  leanstream_model* model = nullptr;
  Status status =
      checked([&](leanstream_error* e) { return leanstream_model_open(&runtime, path.c_str(), &params, &model, e); });
  if (!status.ok()) return status;
  return Model(model);
}

leanstream_session_params session_params(const ContextOptions& options) {
  auto params = with_size<leanstream_session_params>();
  leanstream_session_params_init(&params);
  params.context = options.context;
  const bool q8_0 = options.kv_type == "q8_0" || options.kv_type_k == "q8_0";
  params.kv_type = q8_0 ? LEANSTREAM_KV_Q8_0 : LEANSTREAM_KV_F16;
  params.abort = [](void*) { return interrupted(); };
  return params;
}

Status does_not_fit(const leanstream_plan& plan) {
  return out_of_budget(
      formatted("the model does not fit the memory budget of %s: weights %s, KV cache %s for %u positions, buffers %s, "
                "process %s; "
                "the least budget for this is %s (%llu bytes)",
                format_bytes(plan.budget_bytes).c_str(), format_bytes(plan.weights_bytes).c_str(),
                format_bytes(plan.kv_bytes).c_str(), plan.context, format_bytes(plan.buffers_bytes).c_str(),
                format_bytes(plan.fixed_bytes).c_str(), format_bytes(plan.least_budget_bytes).c_str(),
                static_cast<unsigned long long>(plan.least_budget_bytes)));
}

Result<LoadedModel> load_model(const ModelOptions& options, const ContextOptions& context, const EarlyCheck& check) {
  Result<Runtime> runtime = create_runtime(options);
  if (!runtime.ok()) return runtime.status();
  say_without_effect(options.without_effect);
  leanstream_session_params params = session_params(context);
  auto plan = with_size<leanstream_plan>();
  {
    const Result<Model> head =
        open_model(**runtime, options.model, LEANSTREAM_LOAD_VOCABULARY, nullptr, options.chat_template);
    if (!head.ok()) return head.status();
    Status status = checked([&](leanstream_error* e) { return leanstream_model_plan(head->get(), &params, &plan, e); });
    if (!status.ok()) return status;
    const Result<leanstream_model_info> info = model_info(**head);
    if (!info.ok()) return info.status();
    say_choices(options, context, plan, *info);
    if (!plan.fits) return does_not_fit(plan);
    status = check(**head, plan);
    if (!status.ok()) return status;
  }
  params.context = plan.context;
  Result<Model> model = open_model(**runtime, options.model, LEANSTREAM_LOAD_FULL, &params, options.chat_template);
  if (!model.ok()) return model.status();
  leanstream_session* session = nullptr;
  Status status =
      checked([&](leanstream_error* e) { return leanstream_session_create(model->get(), &params, &session, e); });
  if (!status.ok()) return status;
  return LoadedModel{std::move(*runtime), std::move(*model), Session(session), plan};
}

}  // namespace leanstream::cli
