// Stands in for Highway's library where only its headers are there (LeanstreamKernelsOnly.cmake): the target that the
// compiler's flags promise, and no other.

#include <hwy/targets.h>

namespace hwy {

int64_t SupportedTargets() {
  return HWY_STATIC_TARGET;
}

}  // namespace hwy
