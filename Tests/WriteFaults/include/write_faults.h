// Makes writes to LMDB files fail. See write_faults.c.
#pragma once
#include <stdint.h>

/// Writes to files whose names end in `.mdb` succeed `count` times from now on, then each fails with `error`; with
/// `SHORT_WRITE` it writes half of its bytes. 0 ends that. Any thread; one test at a time.
void fail_lmdb_writes(int32_t count, int32_t error);

/// Writes to such files since the last call of `fail_lmdb_writes`.
int32_t lmdb_write_count(void);

enum { SHORT_WRITE = -1 };
