// Makes writes to LMDB files and listings of directories fail. See write_faults.c.
#pragma once
#include <stdint.h>

/// Writes to files whose names end in `.mdb` succeed `count` times from now on, then each fails with `error`; with
/// `SHORT_WRITE` it writes half of its bytes. 0 ends that. Any thread; one test at a time.
void fail_lmdb_writes(int32_t count, int32_t error);

/// Writes to such files since the last call of `fail_lmdb_writes`.
int32_t lmdb_write_count(void);

enum { SHORT_WRITE = -1 };

/// Each listing of a directory whose path ends so has `count` entries from now on, `.` and `..` among them, and then fails with `error`. An
/// error of 0 ends that. Any thread; one test at a time.
void fail_directory_reads(const char *_Nonnull path_end, int32_t count, int32_t error);
