/* A program outside the project's tree: it has what is installed, and nothing else. */
#include <leanstream/leanstream.h>
#include <stdio.h>

int main(void) {
  leanstream_runtime* runtime = NULL;
  leanstream_error error;
  if (leanstream_runtime_create(NULL, &runtime, &error) != LEANSTREAM_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  leanstream_runtime_info info;
  info.struct_size = sizeof info;
  const leanstream_status status = leanstream_runtime_get_info(runtime, &info, &error);
  printf("leanstream %s, %s, %u threads\n", leanstream_version(), info.simd, (unsigned)info.threads);
  leanstream_runtime_destroy(runtime);
  return status == LEANSTREAM_OK ? 0 : 1;
}
