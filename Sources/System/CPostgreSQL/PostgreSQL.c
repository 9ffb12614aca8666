#define _GNU_SOURCE
#include "CPostgreSQL.h"

#include <dlfcn.h>
#include <postgresql/libpq-fe.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// The functions of the library, with the types of its header.
static struct {
    __typeof__(&PQconnectStartParams) start;
    __typeof__(&PQconnectPoll) poll;
    __typeof__(&PQfinish) finish;
    __typeof__(&PQsocket) socket;
    __typeof__(&PQerrorMessage) error;
    __typeof__(&PQstatus) connection_status;
    __typeof__(&PQhost) host;
    __typeof__(&PQport) port;
    __typeof__(&PQconninfo) options;
    __typeof__(&PQsetnonblocking) set_nonblocking;
    __typeof__(&PQsetNoticeReceiver) set_receiver;
    __typeof__(&PQsendQuery) send;
    __typeof__(&PQsendQueryParams) send_values;
    __typeof__(&PQsendPrepare) prepare;
    __typeof__(&PQsendQueryPrepared) send_prepared;
    __typeof__(&PQflush) flush;
    __typeof__(&PQconsumeInput) consume;
    __typeof__(&PQisBusy) is_busy;
    __typeof__(&PQgetResult) result;
    __typeof__(&PQclear) clear;
    __typeof__(&PQresultStatus) status;
    __typeof__(&PQresultErrorField) field;
    __typeof__(&PQresultErrorMessage) message;
    __typeof__(&PQntuples) rows;
    __typeof__(&PQnfields) columns;
    __typeof__(&PQgetvalue) value;
    __typeof__(&PQgetlength) length;
    __typeof__(&PQgetisnull) is_null;
    __typeof__(&PQconninfoParse) parse;
    __typeof__(&PQconninfoFree) free_options;
    __typeof__(&PQfreemem) free;
} pq;

struct connection {
    PGconn *handle;
    int warnings;
};

static const char *load_error;

static int find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    *(void **)function = found;
    return found != NULL;
}

static void load(void) {
    // Stays loaded: its threads and tables have no end.
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        load_error = dlerror();
        return;
    }
    int is_complete = find(library, "PQconnectStartParams", &pq.start) && find(library, "PQconnectPoll", &pq.poll) &&
                      find(library, "PQfinish", &pq.finish) && find(library, "PQsocket", &pq.socket) &&
                      find(library, "PQerrorMessage", &pq.error) &&
                      find(library, "PQstatus", &pq.connection_status) && find(library, "PQhost", &pq.host) &&
                      find(library, "PQport", &pq.port) && find(library, "PQconninfo", &pq.options) &&
                      find(library, "PQsetnonblocking", &pq.set_nonblocking) &&
                      find(library, "PQsetNoticeReceiver", &pq.set_receiver) && find(library, "PQsendQuery", &pq.send) &&
                      find(library, "PQsendQueryParams", &pq.send_values) &&
                      find(library, "PQsendPrepare", &pq.prepare) &&
                      find(library, "PQsendQueryPrepared", &pq.send_prepared) && find(library, "PQflush", &pq.flush) &&
                      find(library, "PQconsumeInput", &pq.consume) && find(library, "PQisBusy", &pq.is_busy) &&
                      find(library, "PQgetResult", &pq.result) && find(library, "PQclear", &pq.clear) &&
                      find(library, "PQresultStatus", &pq.status) && find(library, "PQresultErrorField", &pq.field) &&
                      find(library, "PQresultErrorMessage", &pq.message) && find(library, "PQntuples", &pq.rows) &&
                      find(library, "PQnfields", &pq.columns) && find(library, "PQgetvalue", &pq.value) &&
                      find(library, "PQgetlength", &pq.length) && find(library, "PQgetisnull", &pq.is_null) &&
                      find(library, "PQconninfoParse", &pq.parse) &&
                      find(library, "PQconninfoFree", &pq.free_options) && find(library, "PQfreemem", &pq.free);
    if (!is_complete) load_error = "libpq lacks functions";
}

const char *hearth_pq_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return load_error;
}

static int has_scheme(const char *address) {
    return strncmp(address, "postgresql://", 13) == 0 || strncmp(address, "postgres://", 11) == 0;
}

// Whether a value is a part of a password: one with `@` or `/` that is not escaped ends in the wrong place.
static int is_misplaced(const char *keyword, const char *value) {
    if (strcmp(keyword, "port") == 0) return value[strspn(value, "0123456789,")] != '\0';
    return (strcmp(keyword, "host") == 0 || strcmp(keyword, "dbname") == 0) && strchr(value, '@') != NULL;
}

enum hearth_pq_address hearth_pq_look_at(const char *address) {
    int is_uri = has_scheme(address);
    if (!is_uri && strchr(address, '=') == NULL)
        return strpbrk(address, "@:/") == NULL ? HEARTH_PQ_PLAIN : HEARTH_PQ_MALFORMED;
    char *error = NULL;
    PQconninfoOption *options = pq.parse(address, &error);
    // The text of the error may have the password.
    if (error != NULL) pq.free(error);
    if (options == NULL) return HEARTH_PQ_MALFORMED;
    enum hearth_pq_address found = HEARTH_PQ_PLAIN;
    int is_malformed = 0;
    for (PQconninfoOption *option = options; option->keyword != NULL; option++) {
        int is_secret = strcmp(option->keyword, "password") == 0 || strcmp(option->keyword, "sslpassword") == 0;
        if (is_secret && option->val != NULL) found = HEARTH_PQ_SECRET;
        if (is_uri && option->val != NULL && is_misplaced(option->keyword, option->val)) is_malformed = 1;
    }
    pq.free_options(options);
    return is_malformed ? HEARTH_PQ_MALFORMED : found;
}

static void count_warning(void *context, const PGresult *notice) {
    const char *severity = pq.field(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != NULL && strcmp(severity, "WARNING") == 0) ((struct connection *)context)->warnings++;
}

void *hearth_pq_connect(const char *const *keywords, const char *const *values) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) return NULL;
    connection->handle = pq.start(keywords, values, 1);
    if (connection->handle == NULL) {
        free(connection);
        return NULL;
    }
    pq.set_receiver(connection->handle, count_warning, connection);
    return connection;
}

static PGconn *handle(void *connection) { return ((struct connection *)connection)->handle; }

void hearth_pq_close(void *connection) {
    pq.finish(handle(connection));
    free(connection);
}

enum hearth_pq_step hearth_pq_advance(void *connection) {
    switch (pq.poll(handle(connection))) {
    case PGRES_POLLING_OK: return HEARTH_PQ_READY;
    case PGRES_POLLING_READING: return HEARTH_PQ_READING;
    case PGRES_POLLING_WRITING: return HEARTH_PQ_WRITING;
    default: return HEARTH_PQ_FAILED;
    }
}

int hearth_pq_socket(void *connection) { return pq.socket(handle(connection)); }

int hearth_pq_has_failed(void *connection) { return pq.connection_status(handle(connection)) == CONNECTION_BAD; }

const char *hearth_pq_host(void *connection) { return pq.host(handle(connection)); }

const char *hearth_pq_port(void *connection) { return pq.port(handle(connection)); }

char *hearth_pq_option(void *connection, const char *keyword) {
    PQconninfoOption *options = pq.options(handle(connection));
    if (options == NULL) return NULL;
    char *value = NULL;
    for (PQconninfoOption *option = options; option->keyword != NULL; option++) {
        if (strcmp(option->keyword, keyword) == 0 && option->val != NULL) value = strdup(option->val);
    }
    pq.free_options(options);
    return value;
}

const char *hearth_pq_error(void *connection) { return pq.error(handle(connection)); }

int hearth_pq_make_nonblocking(void *connection) { return pq.set_nonblocking(handle(connection), 1); }

int hearth_pq_send(void *connection, const char *sql, int count, const char *const *values, const int *lengths,
                   const int *formats) {
    if (count < 0) return pq.send(handle(connection), sql);
    return pq.send_values(handle(connection), sql, count, NULL, values, lengths, formats, 1);
}

int hearth_pq_prepare(void *connection, const char *sql) { return pq.prepare(handle(connection), "", sql, 0, NULL); }

int hearth_pq_send_prepared(void *connection, int count, const char *const *values, const int *lengths,
                            const int *formats) {
    return pq.send_prepared(handle(connection), "", count, values, lengths, formats, 1);
}

int hearth_pq_flush(void *connection) { return pq.flush(handle(connection)); }

int hearth_pq_consume(void *connection) { return pq.consume(handle(connection)); }

int hearth_pq_is_busy(void *connection) { return pq.is_busy(handle(connection)); }

int hearth_pq_take_warnings(void *connection) {
    int warnings = ((struct connection *)connection)->warnings;
    ((struct connection *)connection)->warnings = 0;
    return warnings;
}

void *hearth_pq_result(void *connection) { return pq.result(handle(connection)); }

void hearth_pq_clear(void *result) { pq.clear(result); }

int hearth_pq_succeeded(const void *result) {
    ExecStatusType status = pq.status(result);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

const char *hearth_pq_state(const void *result) {
    const char *state = pq.field(result, PG_DIAG_SQLSTATE);
    return state == NULL ? "" : state;
}

const char *hearth_pq_message(const void *result) { return pq.message(result); }

int hearth_pq_rows(const void *result) { return pq.rows(result); }

int hearth_pq_columns(const void *result) { return pq.columns(result); }

const char *hearth_pq_value(const void *result, int row, int column, int *length) {
    if (pq.is_null(result, row, column)) return NULL;
    *length = pq.length(result, row, column);
    return pq.value(result, row, column);
}
