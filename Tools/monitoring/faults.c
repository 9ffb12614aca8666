// A disk that fails or is slow, for Tools/monitoring/drills: replaces functions of the C library in a process that preloads it.
//
// The directory in HEARTH_DRILL has a file for each fault that is wanted now:
//     fail-sync    syncs of the log fail with EIO
//     slow-sync    syncs take 0.7 s longer
//     fail-runs    writes to files of runs fail with EIO
//     slow-merges  writes of merges to files of runs take 0.3 s longer
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static bool wants(const char *fault) {
    const char *directory = getenv("HEARTH_DRILL");
    char path[PATH_MAX];
    if (directory == NULL) return false;
    snprintf(path, sizeof path, "%s/%s", directory, fault);
    return access(path, F_OK) == 0;
}

static bool is_of_runs(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return false;
    path[length] = 0;
    return strstr(path, "/runs/") != NULL;
}

static bool is_merge(void) {
    char name[16];
    return prctl(PR_GET_NAME, name) == 0 && strcmp(name, "merge") == 0;
}

// Whether the write must fail. Waits if it must be slow.
static bool write_fails(int descriptor) {
    if (wants("slow-merges") && is_merge() && is_of_runs(descriptor)) usleep(300000);
    if (!wants("fail-runs") || !is_of_runs(descriptor)) return false;
    errno = EIO;
    return true;
}

static int sync_of(int descriptor, long call) {
    if (!is_of_runs(descriptor)) {
        if (wants("slow-sync")) usleep(700000);
        if (wants("fail-sync")) {
            errno = EIO;
            return -1;
        }
    }
    return (int)syscall(call, descriptor);
}

int fdatasync(int descriptor) { return sync_of(descriptor, SYS_fdatasync); }
int fsync(int descriptor) { return sync_of(descriptor, SYS_fsync); }

ssize_t write(int descriptor, const void *bytes, size_t count) {
    return write_fails(descriptor) ? -1 : syscall(SYS_write, descriptor, bytes, count);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
    return write_fails(descriptor) ? -1 : syscall(SYS_pwrite64, descriptor, bytes, count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    return pwrite64(descriptor, bytes, count, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    return write_fails(descriptor) ? -1 : syscall(SYS_writev, descriptor, parts, count);
}
