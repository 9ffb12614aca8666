// What the load clients share: latencies in a histogram, the server's CPU time, and the measured runs.
#ifndef HEARTH_LOAD_H
#define HEARTH_LOAD_H

#include "common.h"
#include <sys/epoll.h>
#include <unistd.h>

enum { FINE = 32, BUCKETS = 64 * FINE, MAX_RUNS = 64 };

static uint64_t histogram[BUCKETS], replies;

static inline unsigned bucket_of(uint64_t value) {
    if (value < FINE) return (unsigned)value;
    unsigned high = 63 - (unsigned)__builtin_clzll(value);
    return (high - 4) * FINE + (unsigned)((value >> (high - 5)) & (FINE - 1));
}

static inline uint64_t value_of(unsigned bucket) {
    if (bucket < 2 * FINE) return bucket;
    return (uint64_t)(FINE + bucket % FINE) << (bucket / FINE - 1);
}

static inline double quantile_us(double q) {
    uint64_t total = 0, seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) total += histogram[i];
    for (unsigned i = 0; i < BUCKETS; i++)
        if ((seen += histogram[i]) > (uint64_t)(q * (double)total)) return (double)value_of(i) / 1e3;
    return 0;
}

static inline double cpu_seconds_of(int pid) {
    char path[64];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) user = system = 0;
    fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

// Runs the load and prints its line; `receive` takes what epoll has for one connection and counts `replies`.
static inline void measure(int loop, void (*receive)(void *connection), int connections, int depth, double seconds, int runs, int pid) {
    double rate[MAX_RUNS], p50[MAX_RUNS], p99[MAX_RUNS], p999[MAX_RUNS], cpu[MAX_RUNS];
    for (int run = -1; run < runs; run++) { // run -1 warms up
        memset(histogram, 0, sizeof histogram);
        replies = 0;
        double cpu_before = cpu_seconds_of(pid);
        uint64_t start = now_ns(), limit = (uint64_t)((run < 0 ? 0.3 : seconds) * 1e9);
        while (now_ns() - start < limit) {
            struct epoll_event events[256];
            int count = epoll_wait(loop, events, 256, 100);
            for (int i = 0; i < count; i++) receive(events[i].data.ptr);
        }
        if (run < 0) continue;
        rate[run] = (double)replies / seconds_since(start);
        p50[run] = quantile_us(0.5);
        p99[run] = quantile_us(0.99);
        p999[run] = quantile_us(0.999);
        cpu[run] = (cpu_seconds_of(pid) - cpu_before) * 1e6 / (double)replies;
    }
    double *all[] = {rate, p50, p99, p999, cpu};
    for (int i = 0; i < 5; i++) qsort(all[i], (size_t)runs, sizeof(double), compare_double);
    printf("conns %3d depth %2d: %9.0f req/s (%.0f-%.0f)  p50 %8.1f us  p99 %8.1f us  p99.9 %8.1f us  server cpu %6.2f us/req\n", connections,
           depth, rate[runs / 2], rate[0], rate[runs - 1], p50[runs / 2], p99[runs / 2], p999[runs / 2], cpu[runs / 2]);
}

#endif
