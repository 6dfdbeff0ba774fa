# Writes OUTPUT, a header with the commit of SOURCE_DIR, only when it changed, so that nothing is rebuilt in vain.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=10 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[#pragma once

namespace leanstream::cli {
inline constexpr char kCommit[] = "@commit@";
}  // namespace leanstream::cli
]])
