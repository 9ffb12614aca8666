// One synced write at a time: pwrite and fdatasync, a linked write and sync of io_uring, a write of io_uring that syncs.
// docs/decisions/0053-no-io-uring.md has the results.
// usage: sync_uring DIR [SECONDS=0.5] [ROUNDS=6]    prints the rates of each round
// build: cc -O2 sync_uring.c -luring (Debian: liburing-dev)
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 16384 };
typedef enum { CALLS, LINKED, WRITE_DSYNC, WAYS } Way;

static const char *const names[] = {"pwrite, fdatasync", "linked write and fsync", "write with RWF_DSYNC"};
static char block[BLOCK];
static struct io_uring ring;

static void submit_and_check(unsigned count) {
    io_uring_submit_and_wait(&ring, count);
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    io_uring_for_each_cqe(&ring, head, cqe) {
        if (cqe->res < 0) DIE("io_uring: %s", strerror(-cqe->res));
        seen++;
    }
    io_uring_cq_advance(&ring, seen);
    if (seen != count) DIE("%u of %u requests ended", seen, count);
}

static void write_synced(int fd, Way way, off_t at) {
    if (way == CALLS) {
        if (pwrite(fd, block, BLOCK, at) != BLOCK || fdatasync(fd)) DIE("write failed");
        return;
    }
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_write(sqe, fd, block, BLOCK, (__u64)at);
    if (way == WRITE_DSYNC) {
        sqe->rw_flags = RWF_DSYNC;
        return submit_and_check(1);
    }
    sqe->flags |= IOSQE_IO_LINK;
    io_uring_prep_fsync(io_uring_get_sqe(&ring), fd, IORING_FSYNC_DATASYNC);
    submit_and_check(2);
}

int main(int argc, char **argv) {
    if (argc < 2) DIE("usage: sync_uring DIR [SECONDS=0.5] [ROUNDS=6]");
    double seconds = argc > 2 ? atof(argv[2]) : 0.5;
    int rounds = argc > 3 ? atoi(argv[3]) : 6;
    char path[4096];
    snprintf(path, sizeof path, "%s/sync_uring.tmp", argv[1]);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (fd < 0) DIE("cannot open %s", path);
    for (off_t i = 0; i < BLOCKS; i++)
        if (pwrite(fd, block, BLOCK, i * BLOCK) != BLOCK) DIE("write failed");
    fsync(fd);
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    if (io_uring_queue_init_params(64, &ring, &params)) DIE("no io_uring");
    for (int round = 0; round < rounds; round++) {
        for (Way way = CALLS; way < WAYS; way++) {
            uint64_t count = 0, start = now_ns();
            for (; seconds_since(start) < seconds; count++) write_synced(fd, way, (off_t)(count % BLOCKS) * BLOCK);
            printf("%s %.0f/s%s", names[way], (double)count / seconds_since(start), way + 1 < WAYS ? ", " : "\n");
        }
    }
    unlink(path);
    return 0;
}
