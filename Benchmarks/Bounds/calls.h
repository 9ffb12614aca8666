// Calls with streams of messages over one TCP connection, as a client makes them: native frames (docs/protocol.md) or
// gRPC over HTTP/2 with prior knowledge. Windows are so large that they are never shut. Response header fields are not
// decoded: a call that ends without a message has failed.
#ifndef HEARTH_CALLS_H
#define HEARTH_CALLS_H

#include "frames.h"

typedef enum { NATIVE, GRPC } Protocol;
typedef enum { GET_DOCUMENT = 1, COMMIT = 8, RUN_QUERY = 10, LISTEN = 14 } Method; // the methods' numbers in native frames

enum { NATIVE_HEADER = 12, H2_HEADER = 9, GRPC_PREFIX = 5, H2_DATA = 0, H2_HEADERS = 1, H2_RESET = 3, H2_SETTINGS = 4, H2_PING = 6, H2_GOAWAY = 7,
       H2_WINDOW = 8, ROOM = 1 << 20 };

// The first bytes of a gRPC message whose rest comes in a later DATA frame.
typedef struct Part {
    struct Part *next;
    uint32_t stream;
    size_t length;
    uint8_t bytes[];
} Part;

typedef struct {
    int fd;
    uint32_t next_stream;
    uint32_t number; // the caller's
    // Bytes of a frame that is not complete yet.
    uint8_t *left;
    uint32_t left_count;
    Part *parts;
    uint32_t received; // HTTP/2 data bytes since the last WINDOW_UPDATE
} Connection;

// What the caller does with a message; `is_end` for the end of a call that brought no message with it.
typedef void (*Handler)(Connection *c, uint32_t stream, const uint8_t *message, size_t length, int is_end);

static Protocol protocol;
static const char DATABASE[] = "projects/bench/databases/(default)";

static inline void send_all(int fd, const uint8_t *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        ssize_t wrote = write(fd, bytes + at, length - at);
        if (wrote < 0 && errno != EAGAIN) DIE("write: %s", strerror(errno));
        if (wrote > 0) at += (size_t)wrote;
    }
}

static inline size_t put_h2_header(uint8_t *out, size_t length, unsigned type, unsigned flags, uint32_t stream) {
    uint32_t order = htonl(stream);
    out[0] = (uint8_t)(length >> 16), out[1] = (uint8_t)(length >> 8), out[2] = (uint8_t)length;
    out[3] = (uint8_t)type, out[4] = (uint8_t)flags;
    memcpy(out + 5, &order, 4);
    return H2_HEADER;
}

static inline void connect_calls(Connection *c, uint16_t port) {
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address)) DIE("cannot connect: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->next_stream = 1;
}

// The client's part of the opening of a connection.
static inline void greet(Connection *c) {
    static const uint8_t hello[] = {0x89, 'H', 'E', 'A', 'R', 'T', 'H', '\n', 6, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0,
                                    4,    0,   0xff, 0xff, 0xff, 0x7f}; // WINDOW_BYTES
    if (protocol == NATIVE) return send_all(c->fd, hello, sizeof hello);
    uint8_t out[128];
    size_t at = 24;
    memcpy(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", at);
    at += put_h2_header(out + at, 6, H2_SETTINGS, 0, 0);
    memcpy(out + at, "\0\4\x7f\xff\xff\xff", 6); // INITIAL_WINDOW_SIZE
    at += 6 + put_h2_header(out + at + 6, 4, H2_WINDOW, 0, 0);
    memcpy(out + at, "\x7f\xff\0\0", 4);
    send_all(c->fd, out, at + 4);
}

static inline size_t put_field(uint8_t *out, size_t at, const char *prefix, size_t prefix_length, const char *value) {
    memcpy(out + at, prefix, prefix_length);
    out[at += prefix_length] = (uint8_t)strlen(value);
    memcpy(out + at + 1, value, strlen(value));
    return at + 1 + strlen(value);
}

static inline const char *path_of(Method method) {
    switch (method) {
    case GET_DOCUMENT: return "/google.firestore.v1.Firestore/GetDocument";
    case COMMIT: return "/google.firestore.v1.Firestore/Commit";
    case RUN_QUERY: return "/google.firestore.v1.Firestore/RunQuery";
    case LISTEN: return "/google.firestore.v1.Firestore/Listen";
    }
    DIE("no such method");
}

// Begins a call with one message; returns its stream. The bytes are appended to `out`, of which `*at` are used.
static inline uint32_t begin_call(Connection *c, Method method, const uint8_t *message, size_t length, uint8_t *out, size_t *at) {
    uint32_t stream = c->next_stream;
    c->next_stream += 2;
    unsigned is_unary = method != LISTEN; // the client's side
    uint8_t *start = out + *at;
    if (protocol == NATIVE) {
        uint32_t size = (uint32_t)length;
        uint16_t code = (uint16_t)method;
        memcpy(start, &size, 4);
        start[4] = 2, start[5] = (uint8_t)is_unary;
        memcpy(start + 6, &code, 2);
        memcpy(start + 8, &stream, 4);
        memcpy(start + NATIVE_HEADER, message, length);
        *at += NATIVE_HEADER + length;
        return stream;
    }
    // POST, http, then literals that are not indexed.
    size_t end = H2_HEADER;
    start[end++] = 0x83, start[end++] = 0x86;
    end = put_field(start, end, "\x04", 1, path_of(method));
    end = put_field(start, end, "\x01", 1, "127.0.0.1");
    end = put_field(start, end, "\x0f\x10", 2, "application/grpc");
    end = put_field(start, end, "\0\2te", 4, "trailers");
    // The official emulator routes streams by this field.
    end = put_field(start, end, "\0\x1cgoogle-cloud-resource-prefix", 30, DATABASE);
    put_h2_header(start, end - H2_HEADER, H2_HEADERS, 4, stream);
    end += put_h2_header(start + end, length + GRPC_PREFIX, H2_DATA, is_unary, stream);
    uint32_t order = htonl((uint32_t)length);
    start[end] = 0;
    memcpy(start + end + 1, &order, 4);
    memcpy(start + end + GRPC_PREFIX, message, length);
    *at += end + GRPC_PREFIX + length;
    return stream;
}

// Appends a further message of a call.
static inline void put_message(uint32_t stream, const uint8_t *message, size_t length, uint8_t *out, size_t *at) {
    uint8_t *start = out + *at;
    if (protocol == NATIVE) {
        uint32_t size = (uint32_t)length;
        memcpy(start, &size, 4);
        start[4] = 3, start[5] = 0, start[6] = 0, start[7] = 0;
        memcpy(start + 8, &stream, 4);
        memcpy(start + NATIVE_HEADER, message, length);
        *at += NATIVE_HEADER + length;
        return;
    }
    size_t end = put_h2_header(start, length + GRPC_PREFIX, H2_DATA, 0, stream);
    uint32_t order = htonl((uint32_t)length);
    start[end] = 0;
    memcpy(start + end + 1, &order, 4);
    memcpy(start + end + GRPC_PREFIX, message, length);
    *at += end + GRPC_PREFIX + length;
}

static inline void take_data(Connection *c, uint32_t stream, const uint8_t *data, size_t length, Handler handle) {
    Part **place = &c->parts, *joined = NULL;
    while (*place && (*place)->stream != stream) place = &(*place)->next;
    if (*place) {
        joined = realloc(*place, sizeof *joined + (*place)->length + length);
        *place = joined->next;
        memcpy(joined->bytes + joined->length, data, length);
        data = joined->bytes;
        length += joined->length;
    }
    while (length >= GRPC_PREFIX) {
        uint32_t size;
        memcpy(&size, data + 1, 4);
        size = ntohl(size);
        if (length - GRPC_PREFIX < size) break;
        handle(c, stream, data + GRPC_PREFIX, size, 0);
        data += GRPC_PREFIX + size;
        length -= GRPC_PREFIX + size;
    }
    if (length) {
        Part *part = malloc(sizeof *part + length);
        *part = (Part){.next = c->parts, .stream = stream, .length = length};
        memcpy(part->bytes, data, length);
        c->parts = part;
    }
    free(joined);
}

static inline void take_h2_frame(Connection *c, const uint8_t *frame, size_t length, Handler handle) {
    uint8_t reply[H2_HEADER + 8];
    unsigned type = frame[3], flags = frame[4];
    uint32_t stream;
    memcpy(&stream, frame + 5, 4);
    stream = ntohl(stream) & 0x7fffffff;
    const uint8_t *payload = frame + H2_HEADER;
    if (type == H2_DATA) {
        size_t padding = flags & 8 ? payload[0] + 1u : 0;
        take_data(c, stream, payload + (padding ? 1 : 0), length - padding, handle);
        c->received += (uint32_t)length;
        if (c->received > 1u << 29) {
            uint32_t order = htonl(c->received);
            put_h2_header(reply, 4, H2_WINDOW, 0, 0);
            memcpy(reply + H2_HEADER, &order, 4);
            send_all(c->fd, reply, H2_HEADER + 4);
            c->received = 0;
        }
    }
    if ((type == H2_DATA || type == H2_HEADERS) && flags & 1) handle(c, stream, NULL, 0, 1);
    if (type == H2_RESET) handle(c, stream, NULL, 0, 1);
    if (type == H2_GOAWAY) DIE("GOAWAY: %.*s", (int)length - 8, payload + 8);
    if ((type == H2_SETTINGS || type == H2_PING) && !(flags & 1)) {
        size_t echoed = type == H2_PING ? 8 : 0;
        put_h2_header(reply, echoed, type, 1, 0);
        memcpy(reply + H2_HEADER, payload, echoed);
        send_all(c->fd, reply, H2_HEADER + echoed);
    }
}

static inline void take_native_frame(Connection *c, const uint8_t *frame, size_t length, Handler handle) {
    uint32_t stream;
    memcpy(&stream, frame + 8, 4);
    switch (frame[4]) {
    case 3:
        if (frame[5] & 2) DIE("a message in parts");
        return handle(c, stream, frame + NATIVE_HEADER, length, 0);
    case 5: {
        uint16_t code;
        memcpy(&code, frame + 6, 2);
        if (code) DIE("status %u: %.*s", code, (int)length, frame + NATIVE_HEADER);
        return handle(c, stream, NULL, 0, 1);
    }
    case 10: DIE("GOAWAY: %.*s", (int)length, frame + NATIVE_HEADER);
    }
}

// Reads what the socket has, once, and hands out the messages in it. Returns the bytes read, which stay in `*bytes`
// until the next call.
static inline size_t receive_messages(Connection *c, Handler handle, const uint8_t **bytes) {
    static uint8_t in[2 * ROOM];
    size_t header = protocol == NATIVE ? NATIVE_HEADER : H2_HEADER, at = 0, filled = c->left_count;
    if (filled) memcpy(in, c->left, filled);
    ssize_t got = read(c->fd, in + filled, ROOM);
    if (got <= 0) DIE("the server closed a connection");
    *bytes = in + filled;
    filled += (size_t)got;
    while (filled - at >= header) {
        size_t length;
        const uint8_t *frame = in + at;
        if (protocol == NATIVE) {
            uint32_t size;
            memcpy(&size, frame, 4);
            length = size;
        } else {
            length = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];
        }
        if (length > ROOM - header) DIE("a frame of %zu bytes", length);
        if (filled - at < header + length) break;
        at += header + length;
        if (protocol == NATIVE) take_native_frame(c, frame, length, handle);
        else take_h2_frame(c, frame, length, handle);
    }
    if (filled > at) {
        c->left = realloc(c->left, filled - at);
        memcpy(c->left, in + at, filled - at);
    } else if (c->left) {
        free(c->left);
        c->left = NULL;
    }
    c->left_count = (uint32_t)(filled - at);
    return (size_t)got;
}

#endif
