#pragma once

#include <stddef.h>

// The arguments of the process as the kernel passed them. Swift reads them from /proc, which may not be there.

/// The number of arguments, the name of the program included.
int hearth_argument_count(void);

/// Argument `index`, from 0; valid as long as the process.
const char *hearth_argument(int index);

/// Gives threads that are started without a size of their own a stack of this size, in bytes. Swift's module of the C
/// library lacks the call.
void hearth_set_stack_bytes(size_t bytes);
