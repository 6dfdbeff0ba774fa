#pragma once

namespace leanstream::runtime {

// Asks the caller, while something takes its time, whether to stop. May be empty.
struct AbortHook {
  int (*poll)(void* user) = nullptr;  // not 0: stop
  void* user = nullptr;

  bool asks_to_stop() const { return poll != nullptr && poll(user) != 0; }
};

}  // namespace leanstream::runtime
