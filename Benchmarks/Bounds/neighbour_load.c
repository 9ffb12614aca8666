// One client that reads single documents beside many quick readers of large answers: how long do its calls take?
// usage: neighbour_load PORT native|grpc CONNECTIONS STREAMS query|listen DOCS SECONDS [SERVER_PID]
//   query   each stream is a RunQuery of the whole collection `books`, begun again when it ends
//   listen  each stream is a Listen call with one target, the collection `books`; when the target is current it is
//           removed and added again
//   DOCS    documents that gen_docs has made, for the single reads
// The single reads are native GetDocument calls of a separate process, one after the other: alone for a second, then
// beside the readers. Prints one line: the readers' documents/s and MB/s, and the single reads' times alone and beside.
#define _GNU_SOURCE
#include "calls.h"
#include "load.h"
#include "wire.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char DOCUMENTS[] = "projects/bench/databases/(default)/documents";

enum { CURRENT = 3, TIMES_MAX = 1 << 20 };

typedef struct {
    uint64_t phase; // 0: alone; 1: the readers begin, not measured; 2: beside them; 3: the end
    uint64_t counts[2];
    uint64_t times[2][TIMES_MAX];
} Shared;

static Shared *shared;
static int is_listen, has_reply;
static uint32_t streams;
static uint64_t documents_read, bytes_read, targets_read;

// MARK: Readers

// The whole collection, as the StructuredQuery around it.
static void put_books(Back *b, unsigned tag) {
    size_t query_end = b->at, end = b->at;
    put_string(b, 0x12, "books");
    wrap(b, 0x12, end); // from
    wrap(b, tag, query_end);
    put_string(b, 0x0a, DOCUMENTS);
}

static void put_target(Back *b) {
    size_t end = b->at;
    put_byte(b, 1);
    put_byte(b, 0x28); // target_id
    size_t kind_end = b->at;
    put_books(b, 0x12);
    wrap(b, 0x12, kind_end); // query
    wrap(b, 0x12, end);      // add_target
    put_string(b, 0x0a, DATABASE);
}

static void begin_stream(Connection *c) {
    uint8_t out[4096];
    size_t length = 0;
    Back b = {.at = sizeof b.bytes};
    if (is_listen) put_target(&b);
    else put_books(&b, 0x12);
    begin_call(c, is_listen ? LISTEN : RUN_QUERY, b.bytes + b.at, sizeof b.bytes - b.at, out, &length);
    send_all(c->fd, out, length);
}

static void listen_again(Connection *c, uint32_t stream) {
    uint8_t out[4096];
    size_t length = 0;
    Back b = {.at = sizeof b.bytes};
    put_byte(&b, 1);
    put_byte(&b, 0x18); // remove_target
    put_string(&b, 0x0a, DATABASE);
    put_message(stream, b.bytes + b.at, sizeof b.bytes - b.at, out, &length);
    b.at = sizeof b.bytes;
    put_target(&b);
    put_message(stream, b.bytes + b.at, sizeof b.bytes - b.at, out, &length);
    send_all(c->fd, out, length);
}

static int is_current(const uint8_t *message, size_t length) {
    const uint8_t *at = message + 1, *end = message + length;
    take_varint(&at, end);
    return at + 1 < end && at[0] == 0x08 && at[1] == CURRENT;
}

static void take_answer(Connection *c, uint32_t stream, const uint8_t *message, size_t length, int is_end) {
    if (is_end) {
        if (is_listen) DIE("a Listen call ended");
        targets_read++;
        return begin_stream(c);
    }
    bytes_read += length;
    if (!is_listen || message[0] != 0x12) {
        documents_read++;
    } else if (is_current(message, length)) {
        targets_read++;
        listen_again(c, stream);
    }
}

// MARK: The neighbour

static void take_document(Connection *c, uint32_t stream, const uint8_t *message, size_t length, int is_end) {
    (void)c;
    (void)stream;
    (void)message;
    if (is_end && !has_reply) DIE("a single read failed");
    if (length) has_reply = 1;
}

static void read_documents(uint16_t port, uint64_t documents) {
    Connection c = {0};
    protocol = NATIVE;
    connect_calls(&c, port);
    greet(&c);
    setpriority(PRIO_PROCESS, 0, -10); // where it may: its own waiting for the processor is not the server's
    for (uint64_t number = 0; shared->phase < 3; number++) {
        uint8_t out[512];
        char id[ID_LENGTH + 1] = {0}, name[160];
        size_t length = 0;
        Back b = {.at = sizeof b.bytes};
        write_random_id(id, mix64(number) % documents);
        snprintf(name, sizeof name, "%s/books/%s", DOCUMENTS, id);
        put_string(&b, 0x0a, name);
        begin_call(&c, GET_DOCUMENT, b.bytes + b.at, sizeof b.bytes - b.at, out, &length);
        uint64_t phase = shared->phase, start = now_ns();
        send_all(c.fd, out, length);
        has_reply = 0;
        const uint8_t *bytes;
        while (!has_reply) receive_messages(&c, take_document, &bytes);
        // Also a call that began before all readers had, and lasted until they had.
        int row = phase == 0 ? 0 : shared->phase >= 2 ? 1 : -1;
        if (row >= 0 && shared->counts[row] < TIMES_MAX) shared->times[row][shared->counts[row]++] = now_ns() - start;
        struct timespec pause = {.tv_nsec = 500000};
        nanosleep(&pause, NULL);
    }
    exit(0);
}

static void print_times(const char *label, int row) {
    uint64_t *times = shared->times[row], count = shared->counts[row];
    if (!count) DIE("no single read ended");
    qsort(times, count, sizeof *times, compare_u64);
    printf("  %s p50 %.2f ms  p99 %.2f ms  longest %.2f ms", label, (double)percentile(times, count, 0.5) / 1e6,
           (double)percentile(times, count, 0.99) / 1e6, (double)times[count - 1] / 1e6);
}

int main(int argc, char **argv) {
    if (argc < 8) DIE("usage: neighbour_load PORT native|grpc CONNECTIONS STREAMS query|listen DOCS SECONDS [SERVER_PID]");
    uint16_t port = (uint16_t)atoi(argv[1]);
    uint32_t connections = (uint32_t)atoi(argv[3]);
    streams = (uint32_t)atoi(argv[4]);
    is_listen = !strcmp(argv[5], "listen");
    uint64_t documents = strtoull(argv[6], NULL, 10);
    double seconds = atof(argv[7]);
    int pid = argc > 8 ? atoi(argv[8]) : 0;
    if (!connections || !streams || !documents) DIE("connections, streams and documents > 0");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) DIE("no memory");
    pid_t neighbour = fork();
    if (neighbour == 0) read_documents(port, documents);
    sleep(1);
    protocol = !strcmp(argv[2], "grpc") ? GRPC : NATIVE;
    int loop = epoll_create1(0);
    Connection *readers = calloc(connections, sizeof *readers);
    shared->phase = 1;
    for (uint32_t i = 0; i < connections; i++) {
        Connection *c = readers + i;
        c->number = i;
        connect_calls(c, port);
        greet(c);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &event);
    }
    for (uint32_t s = 0; s < streams; s++) for (uint32_t i = 0; i < connections; i++) begin_stream(readers + i);
    // Half a second until all streams have begun; the neighbour's calls count from the beginning.
    shared->phase = 2;
    double cpu_before = cpu_seconds_of(pid);
    uint64_t start = now_ns();
    while (seconds_since(start) < seconds) {
        struct epoll_event events[256];
        int count = epoll_wait(loop, events, 256, 100);
        for (int i = 0; i < count; i++) {
            const uint8_t *bytes;
            receive_messages(events[i].data.ptr, take_answer, &bytes);
        }
    }
    double elapsed = seconds_since(start), cpu = cpu_seconds_of(pid) - cpu_before;
    shared->phase = 3;
    // The call under way counts: the readers go, and with them what it waits for.
    for (uint32_t i = 0; i < connections; i++) close(readers[i].fd);
    waitpid(neighbour, NULL, 0);
    printf("%s %s, %u connections x %u streams: %.0f documents/s  %.0f MB/s  %lu answers  server cpu %.2f us/document ", argv[2], argv[5],
           connections, streams, (double)documents_read / elapsed, (double)bytes_read / elapsed / 1e6, (unsigned long)targets_read,
           documents_read ? cpu * 1e6 / (double)documents_read : 0);
    print_times("alone:", 0);
    print_times(" beside:", 1);
    puts("");
    return 0;
}
