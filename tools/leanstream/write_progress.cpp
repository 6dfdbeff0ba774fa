#include "write_progress.h"

#include "base/units.h"
#include "exit_code.h"
#include "interrupt.h"
#include "log.h"
#include "progress.h"
#include "text.h"

namespace leanstream::cli {

int write_with_progress(const std::string& output,
                        const std::function<Result<convert::Report>(convert::Progress progress)>& write) {
  ProgressBar bar("writing");
  const Result<convert::Report> report = write([&bar](uint64_t done_bytes, uint64_t total_bytes) {
    bar.show(total_bytes > 0 ? static_cast<double>(done_bytes) / static_cast<double>(total_bytes) : 0);
    return interrupted() == 0;
  });
  bar.hide();
  if (!report.ok()) return report_failure(report.status());
  for (const std::string& note : report->notes) log_note(note);
  log_info(formatted("wrote %s: %s, %.2f million parameters", output.c_str(), format_bytes(report->file_bytes).c_str(),
                     static_cast<double>(report->parameters) / 1e6));
  return kExitOk;
}

}  // namespace leanstream::cli
