// Appends groups of bytes to a log in PostgreSQL, with the statement of a cluster of Hearth (docs/scale.md): one after the other, each
// checked against a lease and against the group before it. Nobody waits for a group: it says what the database takes. pg_serve says
// what clients can have of it.
// usage: pg_append CONNECTION BYTES RECORDS [SECONDS=2] [RUNS=3]
//   CONNECTION  a connection string; the schema `bound` is made anew there
//   BYTES       of one record
//   RECORDS     of one group
// Prints one line: records/s (median, min, max), groups/s, p50 and p99 of an append in us.
#include "load.h"
#include "pg_log.h"

int main(int argc, char **argv) {
    if (argc < 4) DIE("usage: pg_append CONNECTION BYTES RECORDS [SECONDS=2] [RUNS=3]");
    int length = atoi(argv[2]) * atoi(argv[3]), records = atoi(argv[3]);
    double seconds = argc > 4 ? atof(argv[4]) : 2, rate[MAX_RUNS], p50[MAX_RUNS], p99[MAX_RUNS];
    int runs = argc > 5 ? atoi(argv[5]) : 3;
    if (length < 1 || runs < 1 || runs > MAX_RUNS) DIE("bytes and records > 0, runs 1...%d", MAX_RUNS);
    open_log(argv[1]);
    char *bytes = malloc((size_t)length);
    uint64_t sequence = 1;
    for (int r = -1; r < runs; r++) { // run -1 warms up
        memset(histogram, 0, sizeof histogram);
        uint64_t start = now_ns(), limit = (uint64_t)((r < 0 ? 0.3 : seconds) * 1e9), count = 0;
        while (now_ns() - start < limit) {
            sequence++;
            for (int i = 0; i + 8 <= length; i += 8) put_number(bytes + i, mix64(sequence * 65537 + (uint64_t)i));
            uint64_t sent = now_ns();
            send_group(sequence, bytes, length);
            take_reply();
            histogram[bucket_of(now_ns() - sent)]++;
            count++;
        }
        if (r < 0) continue;
        rate[r] = (double)count / seconds_since(start);
        p50[r] = quantile_us(0.5);
        p99[r] = quantile_us(0.99);
    }
    double *all[] = {rate, p50, p99};
    for (int i = 0; i < 3; i++) qsort(all[i], (size_t)runs, sizeof(double), compare_double);
    printf("groups of %d x %s bytes: %.0f req/s (%.0f-%.0f)  %.0f groups/s  p50 %.1f us  p99 %.1f us\n", records, argv[2],
           rate[runs / 2] * records, rate[0] * records, rate[runs - 1] * records, rate[runs / 2], p50[runs / 2], p99[runs / 2]);
    PQfinish(connection);
    return 0;
}
