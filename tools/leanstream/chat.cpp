#include <unistd.h>

#include <csignal>
#include <memory>

#include "commands.h"
#include "conversation.h"
#include "exit_code.h"
#include "interrupt.h"
#include "line_reader.h"
#include "model_options.h"
#include "output.h"
#include "prompt_source.h"
#include "report.h"
#include "sampling_options.h"
#include "text.h"
#include "trace_options.h"

namespace leanstream::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  ContextOptions context;
  GenerationOptions generation;
  TraceOptions trace;
  std::optional<std::string> system_prompt;
  std::optional<std::string> system_prompt_file;
  bool single_turn = false;
  bool timings = true;
  std::string stats_file;
};

// A reply on its way: to standard output, and kept for the conversation.
struct Reply {
  StandardOutput& out;
  std::string text;

  static int append(const char* text, size_t length, void* reply) {
    auto& self = *static_cast<Reply*>(reply);
    self.text.append(text, length);
    return self.out.write({text, length});
  }
};

// What the terminal shows around the messages goes to standard error: standard output has the replies only.
void show(std::string_view text) {
  const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(ignored);
}

class Chat {
 public:
  Chat(const LoadedModel& loaded, const ChatOptions& options)
      : options_(options),
        session_(*loaded.session),
        stop_(options.generation.stop, true),
        conversation_(*loaded.model, *loaded.session) {}

  // Turn by turn until the input ends. An exit code.
  int talk(const std::string& system_prompt) {
    if (!system_prompt.empty()) conversation_.add("system", system_prompt);
    for (;;) {
      if (terminal_) show("> ");
      const Result<std::optional<std::string>> line = input_.next();
      if (!line.ok()) return report_failure(line.status());
      if (!*line) break;
      if ((*line)->empty()) continue;
      const InterruptScope interrupts_stop_the_reply;
      const Status status = answer(**line);
      if (!status.ok()) return report_failure(status);
      // Ctrl-C takes back the turn from the model; whoever has no terminal, or sent SIGTERM, wants the end.
      if (interrupted() && (!terminal_ || interrupted() == SIGTERM)) return kExitInterrupted;
      if (!out_.open()) return out_.exit_code();
      if (options_.single_turn) break;
    }
    if (terminal_) show("\n");
    return kExitOk;
  }

  leanstream_stop_reason last_reason() const { return last_reason_; }
  bool reader_gone() const { return out_.reader_gone(); }

 private:
  Status answer(const std::string& message) {
    conversation_.add("user", message);
    Status status = conversation_.prefill();
    if (status.code() == Code::kCancelled) {
      conversation_.remove_last();
      last_reason_ = LEANSTREAM_STOP_CANCELLED;
      return {};
    }
    if (!status.ok()) return status;

    Reply reply{out_, {}};
    auto params = with_size<leanstream_generate_params>();
    leanstream_generate_params_init(&params);
    params.max_tokens = options_.generation.max_tokens;
    params.ignore_eos = options_.generation.ignore_eos;
    stop_.apply(params);
    params.text = Reply::append;
    params.text_user = &reply;
    auto result = with_size<leanstream_generate_result>();
    status = checked([&](leanstream_error* e) { return leanstream_session_generate(&session_, &params, &result, e); });
    if (!status.ok()) return status;
    out_.write("\n");
    last_reason_ = result.reason;
    conversation_.add("assistant", std::move(reply.text));
    const uint32_t context = leanstream_session_context(&session_);
    if (result.reason == LEANSTREAM_STOP_LENGTH && leanstream_session_position(&session_) == context)
      return {Code::kContextFull,
              formatted("the context of %u positions is full, so the reply ends here (-c sets it)", context)};
    return {};
  }

  const ChatOptions& options_;
  leanstream_session& session_;
  const StopStrings stop_;
  const bool terminal_ = stdin_is_terminal();
  Conversation conversation_;
  LineReader input_;
  StandardOutput out_;
  leanstream_stop_reason last_reason_ = LEANSTREAM_STOP_EOS;
};

Result<std::string> system_prompt(const ChatOptions& options) {
  if (options.system_prompt) return unescaped(*options.system_prompt);
  if (!options.system_prompt_file) return std::string();
  Result<std::string> text = read_whole_file(*options.system_prompt_file);
  if (text.ok()) remove_final_newline(*text);
  return text;
}

int chat(const ChatOptions& options) {
  for (const Status& usage : {check_usage(options.model), check_usage(options.context), check_usage(options.trace)})
    if (!usage.ok()) return report_usage(usage.message());
  if (options.system_prompt && options.system_prompt_file) return report_usage("more than one system prompt");
  if (const Status log = start_log(options.model.log, {options.model.model}); !log.ok()) return report_failure(log);
  if (const Status stats = check_output_file(options.stats_file, options.model.model); !stats.ok())
    return report_failure(stats.with_context("--stats-json"));
  if (const Status trace = check_output_file(options.trace.file, options.model.model); !trace.ok())
    return report_failure(trace.with_context("--trace"));
  const Result<std::string> system = system_prompt(options);
  if (!system.ok()) return report_failure(system.status());

  const auto has_template = [&](const leanstream_model& model, const leanstream_plan&) {
    return Conversation::check_template(model, *system);
  };
  Result<LoadedModel> loaded = [&] {
    const InterruptScope interrupts_cancel;
    return load_model(options.model, options.context, has_template);
  }();
  if (!loaded.ok()) return report_failure(loaded.status());
  if (const Status sampling = set_sampling(*loaded->session, options.generation); !sampling.ok())
    return report_failure(sampling);
  if (const Status trace = start_trace(*loaded->session, options.trace); !trace.ok()) return report_failure(trace);

  Chat conversation(*loaded, options);
  const int exit_code = conversation.talk(*system);
  if (const Status trace = finish_trace(*loaded->session, options.trace); !trace.ok()) return report_failure(trace);
  const Result<RunFigures> figures = collect_figures(*loaded->runtime, *loaded->session, conversation.last_reason());
  if (!figures.ok()) return report_failure(figures.status());
  if (options.timings && exit_code == kExitOk && !conversation.reader_gone()) log_timings(*figures);
  if (!options.stats_file.empty()) {
    const Status written = write_file(options.stats_file, stats_json(*figures));
    if (!written.ok()) return report_failure(written);
  }
  return exit_code;
}

}  // namespace

Command chat_command() {
  auto options = std::make_shared<ChatOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.group("Conversation");
    flags.text("--system-prompt", "TEXT", options->system_prompt, "What the model is told first (also -sys)");
    flags.text("--system-prompt-file", "FILE", options->system_prompt_file, "The same, from a file (also -sysf)");
    flags.text(
        "--chat-template", "FAMILY", options->model.chat_template,
        "Lay the conversation out as models of this family\nexpect it, instead of by the file's template: chatml,\n"
        "llama2, llama3, mistral, gemma, phi3, zephyr, ...");
    flags.flag("--single-turn", options->single_turn, "Leave after one reply (also -st)");
    flags.flag("--perf,!--no-perf", options->timings, "Timings at the end (default); --no-perf: none");
    flags.text("--stats-json", "FILE", options->stats_file, "Write the figures of the conversation to FILE");
    add_generation_options(flags, options->generation);
    add_trace_options(flags, options->trace);
    add_context_options(flags, options->context);
    add_model_options(flags, options->model);
    for (const char* name : {"--conversation", "--no-warmup", "--warmup", "--simple-io"}) flags.quiet(name);
    flags.footer(
        "Each line of standard input is a message; empty lines are skipped. The model file's own chat template lays "
        "the\n"
        "conversation out, unless --chat-template names a family. Ctrl-C stops a reply and returns to the prompt; at "
        "the prompt it leaves (exit code 130).\n"
        "The end of the input (Ctrl-D) leaves with 0.\n\n"
        "  leanstream chat -m model.gguf -sys 'Answer in one sentence.'\n"
        "  printf 'What is a pipe?\\nAnd a fifo?\\n' | leanstream chat -m model.gguf --temp 0");
  };
  return {"chat", "Talk with a model, turn by turn", add_flags, [options] { return chat(*options); }};
}

}  // namespace leanstream::cli
