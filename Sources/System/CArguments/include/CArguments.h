#pragma once
// The arguments of the process as the kernel passed them. Swift reads them from /proc, which may not be there.

/// The number of arguments, the name of the program included.
int hearth_argument_count(void);

/// Argument `index`, from 0; valid as long as the process.
const char *hearth_argument(int index);
