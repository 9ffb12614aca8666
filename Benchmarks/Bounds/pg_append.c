// Appends groups of bytes to a log in PostgreSQL, with the statement of a cluster of Hearth (docs/scale.md): one after the other, each
// checked against a lease and against the group before it. It is the bound of a leader: nothing else is done.
// usage: pg_append CONNECTION BYTES RECORDS [SECONDS=2] [RUNS=3]
//   CONNECTION  a connection string; the schema `bound` is made anew there
//   BYTES       of one record
//   RECORDS     of one group
// Prints one line: records/s (median, min, max), groups/s, p50 and p99 of an append in us.
#include "load.h"
#include <libpq-fe.h>

static PGconn *connection;

static void check(PGresult *result, ExecStatusType wanted) {
    if (PQresultStatus(result) != wanted) DIE("pg_append: %s", PQerrorMessage(connection));
}

static void run(const char *text) {
    PGresult *result = PQexec(connection, text);
    check(result, PGRES_COMMAND_OK);
    PQclear(result);
}

static void put_number(char *at, uint64_t number) {
    for (int i = 7; i >= 0; i--, number >>= 8) at[i] = (char)number;
}

static void append(uint64_t sequence, const char *bytes, int length) {
    char numbers[3][8];
    put_number(numbers[0], sequence);
    put_number(numbers[1], mix64(sequence - 1));
    put_number(numbers[2], mix64(sequence));
    const char *values[] = {numbers[0], numbers[1], numbers[2], bytes};
    const int lengths[] = {8, 8, 8, length}, formats[] = {1, 1, 1, 1};
    PGresult *result = PQexecPrepared(connection, "append", 4, values, lengths, formats, 0);
    check(result, PGRES_TUPLES_OK);
    if (strcmp(PQgetvalue(result, 0, 0), "t") || strcmp(PQgetvalue(result, 0, 1), "1")) DIE("pg_append: not appended");
    PQclear(result);
}

int main(int argc, char **argv) {
    if (argc < 4) DIE("usage: pg_append CONNECTION BYTES RECORDS [SECONDS=2] [RUNS=3]");
    int length = atoi(argv[2]) * atoi(argv[3]), records = atoi(argv[3]);
    double seconds = argc > 4 ? atof(argv[4]) : 2, rate[MAX_RUNS], p50[MAX_RUNS], p99[MAX_RUNS];
    int runs = argc > 5 ? atoi(argv[5]) : 3;
    if (length < 1 || runs < 1 || runs > MAX_RUNS) DIE("bytes and records > 0, runs 1...%d", MAX_RUNS);
    connection = PQconnectdb(argv[1]);
    if (PQstatus(connection) != CONNECTION_OK) DIE("pg_append: %s", PQerrorMessage(connection));
    run("SET client_min_messages = warning");
    run("DROP SCHEMA IF EXISTS bound CASCADE");
    run("CREATE SCHEMA bound");
    run("CREATE TABLE bound.stores (name text PRIMARY KEY, epoch bigint NOT NULL)");
    run("INSERT INTO bound.stores VALUES ('main', 1)");
    run("CREATE TABLE bound.log (sequence bigint NOT NULL, piece integer NOT NULL, pieces integer NOT NULL, epoch bigint NOT NULL,"
        " previous_hash bigint NOT NULL, version bigint NOT NULL, content_hash bigint NOT NULL, hash bigint NOT NULL, data bytea NOT NULL,"
        " PRIMARY KEY (sequence, piece))");
    run("ALTER TABLE bound.log ALTER data SET STORAGE EXTERNAL");
    char first[160];
    snprintf(first, sizeof first, "INSERT INTO bound.log VALUES (1, 0, 1, 1, 0, 0, 0, %lld, '')", (long long)mix64(1));
    run(first);
    PGresult *prepared = PQprepare(
        connection, "append",
        "WITH lease AS (SELECT 1 FROM bound.stores WHERE name = 'main' AND epoch = 1 FOR SHARE),"
        " chain AS (SELECT 1 FROM bound.log WHERE sequence = $1::bigint - 1 AND hash = $2::bigint AND piece = 0),"
        " added AS (INSERT INTO bound.log SELECT $1::bigint, 0, 1, 1, $2::bigint, 0, 0, $3::bigint, $4::bytea FROM lease, chain RETURNING 1)"
        " SELECT EXISTS (SELECT FROM lease), (SELECT count(*) FROM added)",
        4, NULL);
    check(prepared, PGRES_COMMAND_OK);
    PQclear(prepared);

    char *bytes = malloc((size_t)length);
    uint64_t sequence = 1;
    for (int r = -1; r < runs; r++) { // run -1 warms up
        memset(histogram, 0, sizeof histogram);
        uint64_t start = now_ns(), limit = (uint64_t)((r < 0 ? 0.3 : seconds) * 1e9), count = 0;
        while (now_ns() - start < limit) {
            sequence++;
            for (int i = 0; i + 8 <= length; i += 8) put_number(bytes + i, mix64(sequence * 65537 + (uint64_t)i));
            uint64_t sent = now_ns();
            append(sequence, bytes, length);
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
