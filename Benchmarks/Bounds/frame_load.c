// Load client of the Hearth protocol (docs/protocol.md): one thread; every connection keeps DEPTH calls under way.
// usage: frame_load PORT|SOCKET CONNECTIONS DEPTH get|query|commit|insert DOCS [SECONDS=1.5] [RUNS=3] [SERVER_PID]
//   get     GetDocument of a random one of the DOCS documents that gen_docs makes, in the collection `books`
//   query   RunQuery: 20 documents of `books` with the title of a random one
//   commit  Commit of one new book of about 450 encoded bytes, with an id nobody has used; DOCS is the first number
//   insert  the same, but into `books`
// Prints one line: connections, depth, requests/s (median, min, max), p50, p99 and p99.9 latency in us and,
// given the server's process id, the server's CPU microseconds per request. Any answer but success ends it with status 1.
#define _GNU_SOURCE
#include "books.h"
#include "frames.h"
#include "load.h"
#include "protocol.h"
#include "wire.h"

enum { MAX_DEPTH = 256, ROOM = 1 << 20 };

static const char DATABASE[] = "projects/bench/databases/(default)";
static const char DOCUMENTS_ROOT[] = "projects/bench/databases/(default)/documents";

typedef struct {
    int fd;
    uint32_t next_stream;
    size_t filled;
    uint64_t sent_at[MAX_DEPTH]; // by stream number, modulo
    uint8_t *in;
} Connection;

static uint64_t documents, next_document;
static int is_commit, is_query;
static const char *collection = "books";

// A book's fields in canonical order (author, pages, published, tags, title, urls), last first.
static void put_book(Back *b, uint64_t number) {
    char text[96];
    size_t end = b->at, map_end = end;
    snprintf(text, sizeof text, "https://ace.example/titles/%u", (unsigned)(number & 0xffff));
    put_text(b, 0x0a, "publisher", text);
    snprintf(text, sizeof text, "https://books.example/p/%u", (unsigned)(number >> 16 & 0xffff));
    put_text(b, 0x0a, "preview", text);
    snprintf(text, sizeof text, "https://books.example/c/%u.png", (unsigned)(number >> 32 & 0xffff));
    put_text(b, 0x0a, "cover", text);
    wrap(b, 0x32, map_end);
    put_entry(b, 0x12, "urls", end);
    snprintf(text, sizeof text, "The quiet garden of stone %u", (unsigned)(number % 100000));
    put_text(b, 0x12, "title", text);
    end = b->at;
    size_t array_end = end;
    static const char *const labels[] = {"classic", "hainish", "gender", "history", "fiction"};
    static const char *const colors[] = {"gold", "indigo", "green", "white", "red"};
    for (int i = 0; i < 5; i++) {
        size_t element_end = b->at;
        put_text(b, 0x0a, "label", labels[i]);
        put_text(b, 0x0a, "color", colors[i]);
        wrap(b, 0x32, element_end);
        wrap(b, 0x0a, element_end);
    }
    wrap(b, 0x4a, array_end);
    put_entry(b, 0x12, "tags", end);
    put_text(b, 0x12, "published", "1969-03-01T10:00:00Z");
    end = b->at;
    put_varint(b, 100 + number % 900);
    put_byte(b, 0x10);
    put_entry(b, 0x12, "pages", end);
    put_text(b, 0x12, "author", "Ursula Kroeber Le Guin");
}

// The first 20 books with a title.
static void put_query(Back *b, const char *title) {
    size_t query_end = b->at;
    put_varint(b, 20);
    put_byte(b, 0x08);
    wrap(b, 0x2a, query_end); // StructuredQuery.limit
    size_t where_end = b->at;
    put_string(b, 17 << 3 | 2, title);
    wrap(b, 0x1a, where_end); // FieldFilter.value
    put_byte(b, 5);
    put_byte(b, 0x10); // FieldFilter.op: EQUAL
    size_t field_end = b->at;
    put_string(b, 0x12, "title");
    wrap(b, 0x0a, field_end); // FieldFilter.field
    wrap(b, 0x12, where_end); // Filter.field_filter
    wrap(b, 0x1a, where_end); // StructuredQuery.where
    size_t from_end = b->at;
    put_string(b, 0x12, collection);
    wrap(b, 0x12, from_end); // StructuredQuery.from
    wrap(b, 0x12, query_end); // RunQueryRequest.structured_query
    put_string(b, 0x0a, DOCUMENTS_ROOT);
}

static size_t write_request(Connection *c, uint8_t *out, uint64_t now) {
    Back b = {.at = sizeof b.bytes};
    char id[ID_LENGTH + 1] = {0}, name[160];
    uint64_t number = is_commit ? next_document++ : next_random() % documents;
    write_random_id(id, number);
    snprintf(name, sizeof name, "%s/%s/%s", DOCUMENTS_ROOT, collection, id);
    size_t end = b.at;
    if (is_commit) {
        put_book(&b, mix64(number));
        put_string(&b, 0x0a, name);
        wrap(&b, 0x0a, end); // Write.update
        wrap(&b, 0x12, end); // CommitRequest.writes
        put_string(&b, 0x0a, DATABASE);
    } else if (is_query) {
        char title[TITLE_ROOM];
        write_title(title, number);
        put_query(&b, title);
    } else {
        put_string(&b, 0x0a, name);
    }
    uint32_t length = (uint32_t)(sizeof b.bytes - b.at);
    uint16_t code = is_commit ? METHOD_COMMIT : is_query ? METHOD_QUERY : METHOD_GET;
    write_request_header(out, length, code, c->next_stream);
    memcpy(out + FRAME_HEADER, b.bytes + b.at, length);
    c->sent_at[(c->next_stream >> 1) % MAX_DEPTH] = now;
    c->next_stream += 2;
    return FRAME_HEADER + length;
}

static void send_all(int fd, const uint8_t *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        ssize_t wrote = write(fd, bytes + at, length - at);
        if (wrote < 0 && errno != EAGAIN) DIE("write: %s", strerror(errno));
        if (wrote > 0) at += (size_t)wrote;
    }
}

static void send_requests(Connection *c, int count) {
    static uint8_t requests[MAX_DEPTH * 1024];
    uint64_t now = now_ns();
    size_t length = 0;
    for (int i = 0; i < count; i++) length += write_request(c, requests + length, now);
    send_all(c->fd, requests, length);
}

static void receive(void *connection) {
    Connection *c = connection;
    ssize_t got = read(c->fd, c->in + c->filled, ROOM - c->filled);
    if (got <= 0) DIE("the server closed a connection");
    c->filled += (size_t)got;
    uint64_t now = now_ns();
    size_t at = 0;
    int count = 0;
    while (c->filled - at >= FRAME_HEADER) {
        uint32_t length, stream;
        memcpy(&length, c->in + at, 4);
        memcpy(&stream, c->in + at + 8, 4);
        if (length > ROOM - FRAME_HEADER) DIE("a frame of %u bytes", length);
        if (c->filled - at < FRAME_HEADER + length) break;
        uint8_t kind = c->in[at + 4], flags = c->in[at + 5];
        if (kind == KIND_STATUS) {
            uint16_t code;
            memcpy(&code, c->in + at + 6, 2);
            if (code) DIE("status %u: %.*s", code, (int)length, (char *)c->in + at + FRAME_HEADER);
        }
        int is_last = kind == KIND_STATUS || (kind == KIND_MESSAGE && flags & FLAG_END);
        if (kind == KIND_MESSAGE && !is_last && !is_query) DIE("a unary reply of several messages");
        if (is_last) {
            histogram[bucket_of(now - c->sent_at[(stream >> 1) % MAX_DEPTH])]++;
            count++;
        } else if (kind != KIND_MESSAGE && kind != KIND_HELLO && kind != KIND_WINDOW) {
            DIE("unexpected frame kind %u", kind);
        }
        at += FRAME_HEADER + length;
    }
    if (at && at < c->filled) memmove(c->in, c->in + at, c->filled - at);
    c->filled -= at;
    replies += (uint64_t)count;
    if (count) send_requests(c, count);
}

int main(int argc, char **argv) {
    if (argc < 6) DIE("usage: frame_load PORT|SOCKET CONNECTIONS DEPTH get|query|commit|insert DOCS [SECONDS=1.5] [RUNS=3] [SERVER_PID]");
    int connections = atoi(argv[2]), depth = atoi(argv[3]);
    is_query = !strcmp(argv[4], "query");
    is_commit = !strcmp(argv[4], "commit") || !strcmp(argv[4], "insert");
    if (!is_commit && !is_query && strcmp(argv[4], "get")) DIE("no such call: %s", argv[4]);
    if (!strcmp(argv[4], "commit")) collection = "written";
    documents = next_document = strtoull(argv[5], NULL, 10);
    double seconds = argc > 6 ? atof(argv[6]) : 1.5;
    int runs = argc > 7 ? atoi(argv[7]) : 3, pid = argc > 8 ? atoi(argv[8]) : 0;
    if (depth < 1 || depth > MAX_DEPTH || runs < 1 || runs > MAX_RUNS || !documents) DIE("depth 1...%d, runs 1...%d, documents > 0", MAX_DEPTH, MAX_RUNS);
    int loop = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        Connection *c = calloc(1, sizeof *c);
        c->in = malloc(ROOM);
        c->next_stream = 1;
        c->fd = connect_to_hearth(argv[1]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &event);
        send_requests(c, depth);
    }
    measure(loop, receive, connections, depth, seconds, runs, pid);
    return 0;
}
