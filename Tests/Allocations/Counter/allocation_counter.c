// The allocation functions of the C library, counted.
//
// A program that defines `malloc` replaces the C library's for every library it is linked with, the Swift runtime included. glibc
// exports its own under other names (`__libc_malloc` and so on), which do the work here. `free` stays the C library's.
#define _GNU_SOURCE
#include "allocation_counter.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_uint_fast64_t count;

static void note(void) { atomic_fetch_add_explicit(&count, 1, memory_order_relaxed); }

uint64_t allocation_count(void) { return atomic_load_explicit(&count, memory_order_relaxed); }

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    note();
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    note();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    note();
    void *found = __libc_memalign(alignment, size);
    if (!found) return ENOMEM;
    *memory = found;
    return 0;
}

// A client that allocates nothing, so that what is counted is the server's.

static uint8_t reply[1 << 20];

int loopback_connect(uint16_t port) {
    int found = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    setsockopt(found, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct timeval patience = {.tv_sec = 60};
    setsockopt(found, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connect(found, (struct sockaddr *)&address, sizeof address) == 0 ? found : -1;
}

static int receive(int socket, int64_t count) {
    if (count > (int64_t)sizeof reply) return 0;
    for (int64_t got = 0; got < count;) {
        ssize_t part = recv(socket, reply + got, count - got, 0);
        if (part <= 0) return 0;
        got += part;
    }
    return 1;
}

int exchange(int socket, const uint8_t *request, int64_t request_count) {
    for (int64_t sent = 0; sent < request_count;) {
        ssize_t part = send(socket, request + sent, request_count - sent, MSG_NOSIGNAL);
        if (part <= 0) return -1;
        sent += part;
    }
    // The header is 12 bytes: the payload's length in four, then kind and flags.
    if (!receive(socket, 12)) return -1;
    int result = reply[4] << 8 | reply[5];
    int64_t length = reply[0] | reply[1] << 8 | reply[2] << 16 | (int64_t)reply[3] << 24;
    return receive(socket, length) ? result : -1;
}
