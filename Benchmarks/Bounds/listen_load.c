// Listeners and a writer, in one thread. Commits come one after the other: the next one is sent when every listener that
// the last one concerns has its snapshot.
// usage: listen_load PORT native|grpc CONNECTIONS STREAMS TARGET SECONDS [SERVER_PID] [FILE]
//        listen_load PORT replay-native|replay-grpc CONNECTIONS STREAMS TARGET SECONDS SERVER_PID FILE
//   PORT      of the server; LISTEN,COMMIT for listeners at one server and commits at another
//   STREAMS   Listen calls of each connection, each with one target
//   TARGET    collection  all listen to one collection; a commit rewrites its one document
//             document    each listens to another document; a commit rewrites one of them
//             window      all listen to the 50 newest documents of a collection; a commit adds one
//             equality    each listens to the documents of the collection `written` by an author who writes none
//             elsewhere   each listens to another collection, in which nobody writes
//   SECONDS   how long to commit; 0 only holds the listeners until the standard input ends
//   FILE      the bytes of one commit's snapshot on one connection: written, or in a replay what the server
//             (broadcast_epoll) sends
// Prints one line; a latency is the time from sending the commit until a listener has the global NO_CHANGE of its snapshot.
#define _GNU_SOURCE
#include "calls.h"
#include "load.h"
#include "wire.h"

enum { NO_CHANGE = 0, REMOVE = 2, CURRENT = 3, ROUNDS_MIN = 5, WARM_ROUNDS = 2, CONNECTIONS_MAX = 20000 };

static const char DOCUMENTS[] = "projects/bench/databases/(default)/documents";

typedef struct {
    uint8_t is_current, is_ready, has_document;
} Listener;

static Listener *listeners;
static uint32_t streams;
static const char *target;
static int loop, is_replay;
static uint64_t ready, delivered, sent_at, commit_number;
static uint64_t acknowledged = 1;
static Connection writer;

// MARK: Requests

// A query's field reference, as the field with a tag of the message around it.
static void put_field_reference(Back *b, unsigned tag, const char *path) {
    size_t end = b->at;
    put_string(b, 0x12, path);
    wrap(b, tag, end);
}

// StructuredQuery, last field first.
static void put_query(Back *b, uint32_t number) {
    char text[64];
    size_t end = b->at;
    if (!strcmp(target, "window")) {
        put_byte(b, 50);
        put_byte(b, 0x08);
        wrap(b, 0x2a, end); // limit
        end = b->at;
        put_byte(b, 2); // DESCENDING
        put_byte(b, 0x10);
        put_field_reference(b, 0x0a, "number");
        wrap(b, 0x22, end); // order_by
    }
    if (!strcmp(target, "equality")) {
        snprintf(text, sizeof text, "nobody %u", number);
        end = b->at;
        put_string(b, 17 << 3 | 2, text);
        wrap(b, 0x1a, end); // value
        put_byte(b, 5);     // EQUAL
        put_byte(b, 0x10);
        put_field_reference(b, 0x0a, "author");
        wrap(b, 0x12, end); // field_filter
        wrap(b, 0x1a, end); // where
    }
    end = b->at;
    snprintf(text, sizeof text, "elsewhere%u", number);
    int is_elsewhere = !strcmp(target, "elsewhere"), is_equality = !strcmp(target, "equality");
    put_string(b, 0x12, is_elsewhere ? text : is_equality ? "written" : "board");
    wrap(b, 0x12, end); // from
}

// ListenRequest
static void put_listen(Back *b, uint32_t number) {
    char name[160];
    size_t end = b->at;
    put_byte(b, 1);
    put_byte(b, 0x28); // target_id
    size_t kind_end = b->at;
    if (!strcmp(target, "document")) {
        snprintf(name, sizeof name, "%s/board/note%u", DOCUMENTS, number);
        put_string(b, 0x12, name);
        wrap(b, 0x1a, kind_end); // documents
    } else {
        put_query(b, number);
        wrap(b, 0x12, kind_end); // structured_query
        put_string(b, 0x0a, DOCUMENTS);
        wrap(b, 0x12, kind_end); // query
    }
    wrap(b, 0x12, end); // add_target
    put_string(b, 0x0a, DATABASE);
}

// CommitRequest with one document of about 450 bytes of fields
static void put_commit(Back *b, uint64_t number) {
    char name[160], text[320];
    size_t end = b->at;
    put_text(b, 0x12, "title", "What has changed on the board");
    memset(text, 'a' + (int)(number % 26), sizeof text - 1);
    text[sizeof text - 1] = 0;
    put_text(b, 0x12, "text", text);
    size_t value_end = b->at;
    put_varint(b, number);
    put_byte(b, 0x10);
    put_entry(b, 0x12, "number", value_end);
    put_text(b, 0x12, "author", "Ursula Kroeber Le Guin");
    uint32_t all = streams * (uint32_t)writer.number;
    unsigned id = !strcmp(target, "document") ? (unsigned)(mix64(number) % all) : !strcmp(target, "window") ? (unsigned)number : 0;
    snprintf(name, sizeof name, "%s/board/note%u", DOCUMENTS, id);
    put_string(b, 0x0a, name);
    wrap(b, 0x0a, end); // Write.update
    wrap(b, 0x12, end); // writes
    put_string(b, 0x0a, DATABASE);
}

// MARK: Answers

static void take_written(Connection *c, uint32_t stream, const uint8_t *message, size_t length, int is_end) {
    (void)c;
    (void)stream;
    (void)message;
    (void)length;
    if (is_end && acknowledged != commit_number) DIE("a commit failed");
    if (!is_end) acknowledged = commit_number;
}

static void take_target_change(Listener *l, const uint8_t *at, const uint8_t *end) {
    uint64_t kind = NO_CHANGE;
    int is_global = 1;
    while (at < end) {
        uint64_t tag = take_varint(&at, end);
        uint64_t value = take_varint(&at, end);
        if (tag == 0x08) kind = value;
        if (tag == 0x10 || tag == 0x12) is_global = 0;
        if ((tag & 7) == 2) at += value;
    }
    if (kind == REMOVE) DIE("a target was removed");
    if (kind == CURRENT) l->is_current = 1;
    if (kind != NO_CHANGE || !is_global) return;
    if (l->is_current && !l->is_ready) {
        l->is_ready = 1;
        l->has_document = 0;
        ready++;
    } else if (l->has_document) {
        l->has_document = 0;
        histogram[bucket_of(now_ns() - sent_at)]++;
        delivered++;
    }
}

static void take_listened(Connection *c, uint32_t stream, const uint8_t *message, size_t length, int is_end) {
    if (is_end) DIE("a Listen call ended");
    uint32_t place = (stream - 1) / 2;
    if (place >= streams || !length) DIE("an unexpected message on stream %u", stream);
    Listener *l = listeners + (size_t)c->number * streams + place;
    const uint8_t *at = message + 1, *end = message + length;
    take_varint(&at, end);
    if (message[0] == 0x12) take_target_change(l, at, end);
    else l->has_document = 1;
}

// MARK: Rounds

static int capture = -1;

static void take_events(int milliseconds) {
    struct epoll_event events[256];
    int count = epoll_wait(loop, events, 256, milliseconds);
    for (int i = 0; i < count; i++) {
        Connection *c = events[i].data.ptr;
        const uint8_t *bytes;
        size_t got = receive_messages(c, c == &writer ? take_written : take_listened, &bytes);
        if (capture >= 0 && c != &writer && c->number == 0) send_all(capture, bytes, got);
    }
}

static void watch(Connection *c) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &event);
}

static uint64_t round_trip(uint64_t expected) {
    uint8_t out[8192];
    size_t length = 0;
    delivered = 0;
    commit_number++;
    if (is_replay) {
        out[length++] = 'b';
        acknowledged = commit_number;
    } else {
        Back b = {.at = sizeof b.bytes};
        put_commit(&b, commit_number);
        begin_call(&writer, COMMIT, b.bytes + b.at, sizeof b.bytes - b.at, out, &length);
    }
    sent_at = now_ns();
    send_all(writer.fd, out, length);
    while (delivered < expected || acknowledged != commit_number) {
        take_events(1000);
        if (now_ns() - sent_at > 60000000000u) DIE("%lu of %lu snapshots after 60 s", (unsigned long)delivered, (unsigned long)expected);
    }
    return now_ns() - sent_at;
}

static long resident_bytes(int pid) {
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void open_listeners(Connection *c, uint16_t port) {
    connect_calls(c, port);
    watch(c);
    if (is_replay) {
        for (uint32_t i = 0; i < streams; i++) listeners[(size_t)c->number * streams + i] = (Listener){1, 1, 0};
        ready += streams;
        return;
    }
    greet(c);
    for (uint32_t i = 0; i < streams; i++) {
        uint8_t out[4096];
        size_t length = 0;
        Back b = {.at = sizeof b.bytes};
        put_listen(&b, c->number * streams + i);
        begin_call(c, LISTEN, b.bytes + b.at, sizeof b.bytes - b.at, out, &length);
        send_all(c->fd, out, length);
        // The server pauses a client that does not read.
        if (i % 64 == 63) take_events(0);
    }
}

int main(int argc, char **argv) {
    if (argc < 7) DIE("usage: listen_load PORT native|grpc CONNECTIONS STREAMS TARGET SECONDS [SERVER_PID] [FILE]");
    uint16_t port = (uint16_t)atoi(argv[1]);
    const char *other = strchr(argv[1], ',');
    is_replay = !strncmp(argv[2], "replay-", 7);
    protocol = strstr(argv[2], "grpc") ? GRPC : NATIVE;
    uint32_t connections = (uint32_t)atoi(argv[3]);
    streams = (uint32_t)atoi(argv[4]);
    target = argv[5];
    double seconds = atof(argv[6]);
    int pid = argc > 7 ? atoi(argv[7]) : 0;
    uint64_t all = (uint64_t)connections * streams, expected = !strcmp(target, "document") ? 1 : all;
    if (!connections || connections > CONNECTIONS_MAX || !streams) DIE("connections 1...%d, streams > 0", CONNECTIONS_MAX);

    loop = epoll_create1(0);
    listeners = calloc(all, sizeof *listeners);
    connect_calls(&writer, other ? (uint16_t)atoi(other + 1) : port);
    writer.number = connections;
    watch(&writer);
    if (!is_replay) greet(&writer);
    if (!strcmp(target, "window")) for (int i = 0; i < 100; i++) round_trip(0);
    long before = resident_bytes(pid);
    Connection *opened = calloc(connections, sizeof *opened);
    for (uint32_t i = 0; i < connections; i++) {
        opened[i].number = i;
        open_listeners(opened + i, port);
        take_events(0);
    }
    while (ready < all) take_events(1000);
    double resident = (double)(resident_bytes(pid) - before) / (double)all;
    if (seconds == 0) {
        printf("%s %s, %u connections x %u streams: %.0f B/listener\n", argv[2], target, connections, streams, resident);
        fflush(stdout);
        char byte;
        return read(0, &byte, 1) < 0;
    }

    for (int i = 0; i < WARM_ROUNDS; i++) round_trip(expected);
    memset(histogram, 0, sizeof histogram);
    size_t rounds = 0, room = 1 << 20;
    uint64_t *last = malloc(room * sizeof *last), start = now_ns();
    double cpu_before = cpu_seconds_of(pid);
    while (rounds < room && (rounds < ROUNDS_MIN || seconds_since(start) < seconds)) last[rounds++] = round_trip(expected);
    double elapsed = seconds_since(start), messages = (double)rounds * (double)expected;
    double cpu = (cpu_seconds_of(pid) - cpu_before) * 1e6 / messages;
    qsort(last, rounds, sizeof *last, compare_u64);
    printf("%s %s, %u connections x %u streams: %.0f snapshots/s  p50 %.1f us  p99 %.1f us  last p50 %.1f us  %zu commits  server cpu %.2f us/snapshot  %.0f B/listener\n",
           argv[2], target, connections, streams, messages / elapsed, quantile_us(0.5), quantile_us(0.99), (double)percentile(last, rounds, 0.5) / 1e3, rounds,
           cpu, resident);
    if (argc > 8 && !is_replay) {
        FILE *file = fopen(argv[8], "w");
        if (!file) DIE("cannot write %s", argv[8]);
        capture = fileno(file);
        round_trip(expected);
    }
    return 0;
}
