// The functions with which liblmdb writes, and the one that lists a directory, replaced for the whole process.
//
// A program that defines such a function replaces that of the C library also for the libraries that it is linked with. The system calls, or
// the function of the C library, do the work here.
#define _GNU_SOURCE
#include "write_faults.h"
#include <dirent.h>
#include <dlfcn.h>
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

static char failing_path_end[256];
static atomic_int entries_max;
static atomic_int listing_error;

void fail_directory_reads(const char *path_end, int32_t count, int32_t error) {
    atomic_store(&listing_error, 0);
    snprintf(failing_path_end, sizeof failing_path_end, "%s", path_end);
    atomic_store(&entries_max, count);
    atomic_store(&listing_error, error);
}

static bool is_failing_directory(DIR *directory) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd(directory));
    ssize_t length = readlink(link, path, sizeof path);
    ssize_t end = (ssize_t)strlen(failing_path_end);
    return length >= end && memcmp(path + length - end, failing_path_end, end) == 0;
}

struct dirent *readdir(DIR *directory) {
    static struct dirent *(*read_entry)(DIR *);
    // Entries of the present listing of the thread.
    static _Thread_local DIR *listed;
    static _Thread_local int entries;
    if (read_entry == NULL) read_entry = (struct dirent *(*)(DIR *))dlsym(RTLD_NEXT, "readdir");
    int error = atomic_load(&listing_error);
    if (error != 0 && is_failing_directory(directory)) {
        if (listed != directory) entries = 0;
        listed = directory;
        if (entries++ >= atomic_load(&entries_max)) {
            listed = NULL;
            errno = error;
            return NULL;
        }
    }
    return read_entry(directory);
}
