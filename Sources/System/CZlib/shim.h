// zlib, and the macro by which inflating begins, which Swift does not see.
#ifndef HEARTH_CZLIB_SHIM_H
#define HEARTH_CZLIB_SHIM_H

#include <zlib.h>

/// Prepares a stream that is all zeroes to inflate gzip or zlib data, whichever its first bytes say.
static inline int hearth_inflate_any(z_stream *stream) { return inflateInit2(stream, 15 + 32); }

#endif
