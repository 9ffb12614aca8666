// HTTP/2 floor: one thread, epoll and nghttp2; every request is answered like a unary gRPC call:
// headers, a 5-byte prefix and 256 bytes of data, trailers.
// usage: h2_floor PORT    serves HTTP/2 with prior knowledge on 127.0.0.1 until killed
#define _GNU_SOURCE
#include "frames.h"
#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>

enum { MESSAGE = 5 + 256 };

typedef struct {
    int fd;
    nghttp2_session *session;
    size_t pending, sent;
    uint8_t out[4 * BUFFER];
} Connection;

static int loop;
static nghttp2_session_callbacks *callbacks;

#define PAIR(name, value) \
    {(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}

static ssize_t read_message(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room, uint32_t *flags, nghttp2_data_source *source,
                            void *user) {
    static const nghttp2_nv trailers[] = {PAIR("grpc-status", "0")};
    (void)source;
    (void)user;
    if (room < MESSAGE) return NGHTTP2_ERR_DEFERRED;
    memcpy(out, "\0\0\0\1\0", 5);
    memset(out + 5, 'r', MESSAGE - 5);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_submit_trailer(session, stream, trailers, 1);
    return MESSAGE;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    static const nghttp2_nv headers[] = {PAIR(":status", "200"), PAIR("content-type", "application/grpc")};
    (void)user;
    int is_request = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (!is_request || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    nghttp2_data_provider message = {.read_callback = read_message};
    return nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &message);
}

static void watch(Connection *c, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(loop, operation, c->fd, &event);
}

static void end(Connection *c) {
    nghttp2_session_del(c->session);
    close(c->fd);
    free(c);
}

static void serve(Connection *c, uint32_t events) {
    static uint8_t in[BUFFER];
    int was_blocked = c->pending > c->sent;
    if (events & EPOLLIN) {
        ssize_t got = read(c->fd, in, sizeof in);
        if (got == 0 || (got < 0 && errno != EAGAIN)) return end(c);
        if (got > 0 && nghttp2_session_mem_recv(c->session, in, (size_t)got) < 0) return end(c);
    }
    for (;;) {
        const uint8_t *bytes;
        ssize_t length = 0;
        while (c->pending + BUFFER < sizeof c->out && (length = nghttp2_session_mem_send(c->session, &bytes)) > 0) {
            memcpy(c->out + c->pending, bytes, (size_t)length);
            c->pending += (size_t)length;
        }
        if (length < 0) return end(c);
        if (c->pending == c->sent) break;
        ssize_t wrote = write(c->fd, c->out + c->sent, c->pending - c->sent);
        if (wrote < 0 && errno != EAGAIN) return end(c);
        if (wrote > 0) c->sent += (size_t)wrote;
        if (c->sent < c->pending) break;
        c->pending = c->sent = 0;
    }
    int blocked = c->pending > c->sent;
    if (blocked != was_blocked) watch(c, blocked ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

int main(int argc, char **argv) {
    if (argc < 2) DIE("usage: h2_floor PORT");
    int listener = listen_on_loopback((uint16_t)atoi(argv[1])), one = 1;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN}, events[256];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(loop, events, 256, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                serve(events[i].data.ptr, events[i].events);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            Connection *c = malloc(sizeof *c);
            c->fd = fd;
            c->pending = c->sent = 0;
            nghttp2_session_server_new(&c->session, callbacks, c);
            nghttp2_settings_entry streams = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000};
            nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &streams, 1);
            watch(c, EPOLLIN, EPOLL_CTL_ADD);
            serve(c, 0);
        }
    }
}
