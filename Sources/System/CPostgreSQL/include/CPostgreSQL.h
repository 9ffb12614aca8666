// The part of libpq that asynchronous connections need. The library is loaded by the first use: a server without a
// cluster runs where it is not installed.
#ifndef HEARTH_CPOSTGRESQL_H
#define HEARTH_CPOSTGRESQL_H

#include <stddef.h>

/// Loads the library; to be called before any other function. Thread-safe.
/// Returns NULL, or why that is not possible.
const char *hearth_pq_load(void);

/// What an address of a database has.
enum hearth_pq_address { HEARTH_PQ_PLAIN, HEARTH_PQ_SECRET, HEARTH_PQ_MALFORMED };
/// Whether an address has a password in it. A text without a scheme and without keywords is the name of a database.
/// One is malformed also if a part of a password may have become the name of a host, a port or a database.
enum hearth_pq_address hearth_pq_look_at(const char *address);

/// Begins to connect. `keywords` and `values` end with NULL; a value for `dbname` may be a connection string.
/// Returns NULL if there is no memory. A connection belongs to one thread at a time.
void *hearth_pq_connect(const char *const *keywords, const char *const *values);
void hearth_pq_close(void *connection);

/// What a connection that is being made waits for.
enum hearth_pq_step { HEARTH_PQ_FAILED, HEARTH_PQ_READING, HEARTH_PQ_WRITING, HEARTH_PQ_READY };
enum hearth_pq_step hearth_pq_advance(void *connection);
/// Its descriptor, which may change while it is being made; -1 without one.
int hearth_pq_socket(void *connection);
/// Whether there is no connection and none is being made: 1 or 0. It may fail while it is begun.
int hearth_pq_has_failed(void *connection);
/// The host and the port that are tried, or were tried last. Lent until the next call; may be NULL.
const char *hearth_pq_host(void *connection);
const char *hearth_pq_port(void *connection);
/// An option with which the connection was begun, from wherever it came. For the caller to free; NULL without one.
char *hearth_pq_option(void *connection, const char *keyword);
/// Why the last call failed. Lent until the next call.
const char *hearth_pq_error(void *connection);
/// Puts the connection into the mode in which no call waits; 0, or -1.
int hearth_pq_make_nonblocking(void *connection);

/// Sends a statement; the result has binary values. 1, or 0 for a failure.
/// With a count of -1 the text may have several statements, and the values are text.
int hearth_pq_send(void *connection, const char *sql, int count, const char *const *values, const int *lengths,
                   const int *formats);
/// Sends a statement to be analysed only, in the place of the one analysed before.
int hearth_pq_prepare(void *connection, const char *sql);
/// Sends values for the statement that was analysed. As `hearth_pq_send`.
int hearth_pq_send_prepared(void *connection, int count, const char *const *values, const int *lengths,
                            const int *formats);
/// Writes what waits: 0 if all is written, 1 if some waits, -1 for a failure.
int hearth_pq_flush(void *connection);
/// Reads what has arrived; 1, or 0 for a failure.
int hearth_pq_consume(void *connection);
/// Whether `hearth_pq_result` would wait.
int hearth_pq_is_busy(void *connection);
/// The warnings since the last call.
int hearth_pq_take_warnings(void *connection);

/// The next result of the statement; NULL after the last.
void *hearth_pq_result(void *connection);
void hearth_pq_clear(void *result);
/// Whether the statement succeeded.
int hearth_pq_succeeded(const void *result);
/// The five characters of SQLSTATE, or an empty text.
const char *hearth_pq_state(const void *result);
const char *hearth_pq_message(const void *result);
int hearth_pq_rows(const void *result);
int hearth_pq_columns(const void *result);
/// A value; NULL for null. Lent until the result is cleared.
const char *hearth_pq_value(const void *result, int row, int column, int *length);

#endif
