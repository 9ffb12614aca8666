// Durability floor: how long one synced write takes.
// usage: fsync_floor DIR [SECONDS_PER_RUN=2] [RUNS=5] [BLOCK_KIB=4]
// Prints, for each way of making a write durable, the rate and the latencies in
// microseconds: median over the runs of each run's figure, then min and max.
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
#include <unistd.h>

typedef enum { APPEND_FSYNC, APPEND_FDATASYNC, OVERWRITE_FDATASYNC, OVERWRITE_ODSYNC, APPEND_NOSYNC } Mode;

static const char *const names[] = {
    "append block + fsync", "append block + fdatasync", "overwrite block + fdatasync",
    "overwrite block with O_DSYNC", "append block, no sync",
};

enum { MAX_BLOCK = 16 << 20, FILE_BYTES = 64 << 20, APPEND_BYTES = 1 << 30, MAX_SAMPLES = 4000000 };

static size_t run(const char *path, Mode mode, size_t block_size, double seconds, uint64_t *samples) {
    int overwrite = mode == OVERWRITE_FDATASYNC || mode == OVERWRITE_ODSYNC;
    static char block[MAX_BLOCK];
    memset(block, 'x', sizeof block);
    size_t blocks = (overwrite ? FILE_BYTES : APPEND_BYTES) / block_size;
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (fd < 0) DIE("cannot open %s", path);
    if (overwrite) {
        for (size_t i = 0; i < blocks; i++)
            if (pwrite(fd, block, block_size, (off_t)(i * block_size)) < 0) DIE("write failed");
        fsync(fd);
        if (mode == OVERWRITE_ODSYNC) {
            close(fd);
            fd = open(path, O_RDWR | O_DSYNC);
        }
    }
    size_t count = 0;
    uint64_t start = now_ns(), limit = start + (uint64_t)(seconds * 1e9), previous = start;
    while (previous < limit && count < MAX_SAMPLES) {
        if (pwrite(fd, block, block_size, (off_t)(count % blocks * block_size)) < 0) DIE("write failed");
        if (mode == APPEND_FSYNC) fsync(fd);
        if (mode == APPEND_FDATASYNC || mode == OVERWRITE_FDATASYNC) fdatasync(fd);
        uint64_t now = now_ns();
        samples[count++] = now - previous;
        previous = now;
    }
    close(fd);
    unlink(path);
    return count;
}

int main(int argc, char **argv) {
    if (argc < 2) DIE("usage: fsync_floor DIR [SECONDS_PER_RUN=2] [RUNS=5] [BLOCK_KIB=4]");
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    size_t runs = argc > 3 ? (size_t)atoi(argv[3]) : 5;
    size_t block_size = (argc > 4 ? (size_t)atoi(argv[4]) : 4) << 10;
    char path[4096];
    snprintf(path, sizeof path, "%s/fsync_floor.tmp", argv[1]);
    uint64_t *samples = malloc(MAX_SAMPLES * sizeof *samples);
    double *rate = calloc(runs, sizeof *rate), *p50 = calloc(runs, sizeof *p50), *p99 = calloc(runs, sizeof *p99);
    printf("%-44s\t%12s\t%12s\t%12s\tunit\n", "what", "median", "min", "max");
    for (int mode = 0; mode <= APPEND_NOSYNC; mode++) {
        for (size_t r = 0; r < runs; r++) {
            size_t count = run(path, (Mode)mode, block_size, seconds, samples);
            uint64_t total = 0;
            for (size_t i = 0; i < count; i++) total += samples[i];
            qsort(samples, count, sizeof *samples, compare_u64);
            rate[r] = (double)count / ((double)total / 1e9);
            p50[r] = (double)percentile(samples, count, 0.5) / 1e3;
            p99[r] = (double)percentile(samples, count, 0.99) / 1e3;
        }
        char label[96];
        snprintf(label, sizeof label, "%s: rate", names[mode]);
        print_spread(label, rate, runs, "ops/s");
        snprintf(label, sizeof label, "%s: p50", names[mode]);
        print_spread(label, p50, runs, "us");
        snprintf(label, sizeof label, "%s: p99", names[mode]);
        print_spread(label, p99, runs, "us");
    }
    return 0;
}
