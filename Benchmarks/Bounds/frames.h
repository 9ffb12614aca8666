// The echo protocol of the network anchors: a request is a 4-byte length and 92 bytes, a reply a 4-byte
// length and 700 bytes of which the first 8 repeat the request's first 8: about what a point read of Hearth
// receives and sends. Lengths are little-endian.
#ifndef ANCHORS_FRAMES_H
#define ANCHORS_FRAMES_H

#include "common.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER = 4, REQUEST = 96, REPLY = 704, BUFFER = 65536 };

// Answers the whole frames of in[0..<length]; returns the bytes consumed and adds the reply bytes to *written.
static inline size_t answer_frames(const uint8_t *in, size_t length, uint8_t *out, size_t room, size_t *written) {
    size_t at = 0;
    while (length - at >= HEADER) {
        uint32_t size;
        memcpy(&size, in + at, HEADER);
        if (size < 8 || size > BUFFER / 2) return (size_t)-1;
        if (length - at < HEADER + size || room - *written < REPLY) break;
        uint32_t reply_size = REPLY - HEADER;
        memcpy(out + *written, &reply_size, HEADER);
        memcpy(out + *written + HEADER, in + at + HEADER, 8);
        memset(out + *written + HEADER + 8, 'r', REPLY - HEADER - 8);
        *written += REPLY;
        at += HEADER + size;
    }
    return at;
}

static inline int listen_on_loopback(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024)) DIE("cannot listen on port %u", port);
    return fd;
}

#endif
