/* Compiled as strict C99: the header needs nothing before it and nothing newer. */
#include <leanstream/leanstream.h>

/* Twice is as good as once. */
#include <leanstream/leanstream.h>

int leanstream_header_alone(void);
int leanstream_header_alone(void) { return LEANSTREAM_VERSION_MAJOR; }
