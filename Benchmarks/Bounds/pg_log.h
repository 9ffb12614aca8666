// The log in PostgreSQL of the programs that append to it as a leader of a cluster of Hearth does (docs/scale.md): its tables, and the
// statement, which checks the lease and the group before.
#ifndef HEARTH_PG_LOG_H
#define HEARTH_PG_LOG_H

#include "common.h"
#include <libpq-fe.h>

static PGconn *connection;

static void check(PGresult *result, ExecStatusType wanted) {
    if (PQresultStatus(result) != wanted) DIE("the database answers: %s", PQerrorMessage(connection));
}

static void run(const char *text) {
    PGresult *result = PQexec(connection, text);
    check(result, PGRES_COMMAND_OK);
    PQclear(result);
}

static void put_number(char *at, uint64_t number) {
    for (int i = 7; i >= 0; i--, number >>= 8) at[i] = (char)number;
}

// Connects, makes the schema `bound` anew with group 1 in its log, and prepares the statement.
static void open_log(const char *address) {
    connection = PQconnectdb(address);
    if (PQstatus(connection) != CONNECTION_OK) DIE("no connection: %s", PQerrorMessage(connection));
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
        " added AS (INSERT INTO bound.log SELECT $1::bigint, 0, 1, 1, $2::bigint, 0, 0, $3::bigint, $4::bytea FROM lease, chain"
        " RETURNING 1)"
        " SELECT EXISTS (SELECT FROM lease), (SELECT count(*) FROM added)",
        4, NULL);
    check(prepared, PGRES_COMMAND_OK);
    PQclear(prepared);
}

// Sends group `sequence`; the groups before must be there.
static void send_group(uint64_t sequence, const char *bytes, int length) {
    char numbers[3][8];
    put_number(numbers[0], sequence);
    put_number(numbers[1], mix64(sequence - 1));
    put_number(numbers[2], mix64(sequence));
    const char *values[] = {numbers[0], numbers[1], numbers[2], bytes};
    const int lengths[] = {8, 8, 8, length}, formats[] = {1, 1, 1, 1};
    if (!PQsendQueryPrepared(connection, "append", 4, values, lengths, formats, 0)) DIE("not sent: %s", PQerrorMessage(connection));
}

// Takes the reply, waiting for it if need be.
static void take_reply(void) {
    PGresult *result = PQgetResult(connection);
    check(result, PGRES_TUPLES_OK);
    if (strcmp(PQgetvalue(result, 0, 0), "t") || strcmp(PQgetvalue(result, 0, 1), "1")) DIE("a group was not appended");
    PQclear(result);
    while ((result = PQgetResult(connection))) PQclear(result);
}

#endif
