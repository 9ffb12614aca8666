// What the programs share that speak Hearth's protocol (docs/protocol.md): frames, a connection, random choices.
#ifndef HEARTH_PROTOCOL_H
#define HEARTH_PROTOCOL_H

#include "common.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    FRAME_HEADER = 12,
    KIND_HELLO = 1,
    KIND_REQUEST = 2,
    KIND_MESSAGE = 3,
    KIND_STATUS = 5,
    KIND_WINDOW = 7,
    FLAG_END = 1,
    FLAG_MORE = 2,
    METHOD_GET = 1,
    METHOD_BATCH_GET = 6,
    METHOD_COMMIT = 8,
    METHOD_QUERY = 10,
    STATUS_ABORTED = 10
};

// Writes the header of a REQUEST that is one frame.
static inline void write_request_header(uint8_t *out, uint32_t length, uint16_t method, uint32_t stream) {
    memcpy(out, &length, 4);
    out[4] = KIND_REQUEST;
    out[5] = FLAG_END;
    memcpy(out + 6, &method, 2);
    memcpy(out + 8, &stream, 4);
}

// Connects to a server at a port of loopback or at a Unix socket, whose path has a slash, and sends the preface and HELLO. Calls may follow at once.
static inline int connect_to_hearth(const char *where) {
    int fd, one = 1;
    if (strchr(where, '/')) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        if (strlen(where) >= sizeof address.sun_path) DIE("the path is too long: %s", where);
        strcpy(address.sun_path, where);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address)) DIE("cannot connect to %s", where);
    } else {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(where)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address)) DIE("cannot connect to port %s", where);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    static const uint8_t hello[] = {0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48, 0x0a, 0, 0, 0, 0, KIND_HELLO, 0, 1, 0, 0, 0, 0, 0};
    if (write(fd, hello, sizeof hello) != sizeof hello) DIE("write of the preface");
    return fd;
}

// Xorshift, the same numbers in each run.
static inline uint64_t next_random(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#endif
