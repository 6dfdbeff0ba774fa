#include "tools/leanstream/convert/pack.h"

#include <memory>

#include "base/units.h"
#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "log.h"
#include "output.h"
#include "progress.h"
#include "text.h"
#include "write_progress.h"

namespace leanstream::cli {
namespace {

struct PackOptions {
  convert::PackParams params;
  std::string check;
  LogOptions log;
};

int check(const std::string& path) {
  ProgressBar bar("checking");
  const Result<convert::PackCheck> result =
      convert::check_pack(path, [&bar](uint64_t done_bytes, uint64_t total_bytes) {
        bar.show(static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
        return interrupted() == 0;
      });
  bar.hide();
  if (!result.ok()) return report_failure(result.status());
  StandardOutput out;
  out.write(formatted("%s: all %llu tiles are as they were written (%s)\n", path.c_str(),
                      static_cast<unsigned long long>(result->tiles), format_bytes(result->bytes).c_str()));
  return out.exit_code();
}

int pack(PackOptions& options) {
  const bool checks = !options.check.empty();
  if (checks && (!options.params.input.empty() || !options.params.output.empty()))
    return report_usage("--check looks at a pack; -m and -o make one: give either");
  if (!checks && options.params.input.empty()) return report_usage("no model: give -m FILE");
  if (!checks && options.params.output.empty()) return report_usage("no output: give -o FILE");
  if (const Status log = start_log(options.log, {options.params.input, options.check}); !log.ok())
    return report_failure(log);
  const InterruptScope interrupts_cancel;
  if (checks) return check(options.check);
  return write_with_progress(options.params.output, [&](convert::Progress progress) {
    options.params.progress = std::move(progress);
    return convert::pack(options.params);
  });
}

}  // namespace

Command pack_command() {
  auto options = std::make_shared<PackOptions>();
  const auto add_flags = [options](Flags& flags) {
    flags.text("-m,--model", "FILE", options->params.input, "GGUF file to read; of a split set, its first part");
    flags.text("-o,--output", "FILE", options->params.output, "Where to write the pack");
    flags.text("--check", "PACK", options->check, "Compare every tile of a pack with its checksum instead");
    add_log_options(flags, options->log);
    flags.footer(
        "A pack is the same model laid out for streaming: no number changes, and so does no result.\n\n"
        "  leanstream pack -m model.gguf -o model-pack.gguf\n  leanstream pack --check model-pack.gguf");
  };
  return {"pack", "Lay a model out for streaming, exactly", add_flags, [options] { return pack(*options); }};
}

}  // namespace leanstream::cli
