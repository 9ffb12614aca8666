// The functions with which liblmdb writes, replaced for the whole process.
//
// A program that defines `pwrite` and `writev` replaces those of the C library also for the libraries that it is linked with. The system
// calls do the work here.
#define _GNU_SOURCE
#include "write_faults.h"
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int writes_left;
static atomic_int write_error;
static atomic_int writes_seen;

void fail_lmdb_writes(int32_t count, int32_t error) {
    atomic_store(&writes_left, count);
    atomic_store(&writes_seen, 0);
    atomic_store(&write_error, error);
}

int32_t lmdb_write_count(void) { return atomic_load(&writes_seen); }

static bool is_lmdb_file(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path);
    return length > 4 && memcmp(path + length - 4, ".mdb", 4) == 0;
}

/// What is to happen to a write: 0, an error, or SHORT_WRITE.
static int fault(int descriptor) {
    int error = atomic_load(&write_error);
    if (error == 0 || !is_lmdb_file(descriptor)) return 0;
    atomic_fetch_add(&writes_seen, 1);
    return atomic_fetch_sub(&writes_left, 1) > 0 ? 0 : error;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    int error = fault(descriptor);
    if (error > 0) {
        errno = error;
        return -1;
    }
    return syscall(SYS_pwrite64, descriptor, bytes, error == SHORT_WRITE ? count / 2 : count, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    int error = fault(descriptor);
    if (error > 0) {
        errno = error;
        return -1;
    }
    return syscall(SYS_writev, descriptor, parts, error == SHORT_WRITE ? count / 2 : count);
}
