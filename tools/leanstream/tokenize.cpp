#include <memory>

#include "commands.h"
#include "model_options.h"
#include "output.h"
#include "prompt_source.h"

namespace leanstream::cli {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  PromptOptions prompt;
  bool bos = false;
  bool special = false;
};

int print_tokens(const TokenizeOptions& options) {
  for (const Status& usage : {check_usage(options.model), check_usage(options.prompt)})
    if (!usage.ok()) return report_usage(usage.message());
  if (const Status log = start_log(options.model.log, {options.model.model}); !log.ok()) return report_failure(log);
  const Result<std::string> text = read_prompt(options.prompt, FinalNewline::kKeep);
  if (!text.ok()) return report_failure(text.status());
  const Result<Runtime> runtime = create_runtime(options.model);
  if (!runtime.ok()) return report_failure(runtime.status());
  const Result<Model> model = open_model(**runtime, options.model.model, LEANSTREAM_LOAD_VOCABULARY);
  if (!model.ok()) return report_failure(model.status());
  const uint32_t flags =
      (options.bos ? LEANSTREAM_TOKENIZE_BOS : 0u) | (options.special ? LEANSTREAM_TOKENIZE_SPECIAL : 0u);
  const Result<std::vector<leanstream_token>> tokens = tokenize(**model, *text, flags);
  if (!tokens.ok()) return report_failure(tokens.status());

  std::string line = "[";
  for (const leanstream_token token : *tokens) line += (line.size() > 1 ? ", " : "") + std::to_string(token);
  StandardOutput out;
  out.write(line + "]\n");
  return out.exit_code();
}

}  // namespace

Command tokenize_command() {
  auto options = std::make_shared<TokenizeOptions>();
  options->model.threads = 1;
  const auto add_flags = [options](Flags& flags) {
    flags.text("-m,--model", "FILE", options->model.model, "GGUF file; one with a vocabulary only is enough");
    add_prompt_options(flags, options->prompt);
    flags.flag("--bos", options->bos, "Begin with BOS where the model adds one");
    flags.flag("--special", options->special, "Text that spells a control token becomes that token");
    add_log_options(flags, options->model.log);
    flags.footer(
        "Prints a JSON array of token ids on one line. All bytes of a file or of standard input count, a final "
        "newline\n"
        "too.\n\n  leanstream tokenize -m model.gguf -p 'Hello world' --bos");
  };
  return {"tokenize", "Print the token ids of a text", add_flags, [options] { return print_tokens(*options); }};
}

}  // namespace leanstream::cli
