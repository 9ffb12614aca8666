// Network floor with io_uring: one thread, multishot receive into a ring of buffers, one submission for each
// iteration. docs/decisions/0053-no-io-uring.md compares it with echo_epoll.
// usage: echo_uring PORT    serves the protocol of frames.h on 127.0.0.1 until killed
// build: cc -O2 echo_uring.c -luring (Debian: liburing-dev)
#define _GNU_SOURCE
#include "frames.h"
#include <liburing.h>

enum { ENTRIES = 4096, BUFFERS = 1024, BUFFER_BYTES = 4096, GROUP = 1 };

typedef struct {
    int fd, sending, receiving, ended;
    size_t filled, pending, sent;
    uint8_t in[BUFFER], out[4 * BUFFER];
} Connection;

static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static uint8_t *memory;

static struct io_uring_sqe *entry(void) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (sqe) return sqe;
    io_uring_submit(&ring);
    return io_uring_get_sqe(&ring);
}

// The lowest bit of the data says that an entry sends.
static void receive(Connection *c) {
    struct io_uring_sqe *sqe = entry();
    io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
    io_uring_sqe_set_data(sqe, c);
    c->receiving = 1;
}

static void send_replies(Connection *c) {
    struct io_uring_sqe *sqe = entry();
    io_uring_prep_send(sqe, c->fd, c->out + c->sent, c->pending - c->sent, MSG_NOSIGNAL);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)c | 1);
    c->sending = 1;
}

static void give_back(int buffer) {
    io_uring_buf_ring_add(buffers, memory + (size_t)buffer * BUFFER_BYTES, BUFFER_BYTES, (unsigned short)buffer,
        io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffers, 1);
}

static void end(Connection *c) {
    if (!c->ended) shutdown(c->fd, SHUT_RDWR);
    c->ended = 1;
    if (c->sending || c->receiving) return;
    close(c->fd);
    free(c);
}

static void answer(Connection *c) {
    if (c->sending || c->ended) return;
    size_t used = answer_frames(c->in, c->filled, c->out, sizeof c->out, &c->pending);
    if (used == (size_t)-1) return end(c);
    if (used && used < c->filled) memmove(c->in, c->in + used, c->filled - used);
    c->filled -= used;
    if (c->pending) send_replies(c);
}

static void sent(Connection *c, int result) {
    c->sending = 0;
    if (result <= 0) return end(c);
    c->sent += (size_t)result;
    if (c->sent < c->pending) return send_replies(c);
    c->pending = c->sent = 0;
    answer(c);
}

static void received(Connection *c, struct io_uring_cqe *cqe) {
    c->receiving = (cqe->flags & IORING_CQE_F_MORE) != 0;
    if (cqe->res == -ENOBUFS && !c->ended) return receive(c);
    if (cqe->res <= 0) return end(c);
    int buffer = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
    size_t got = (size_t)cqe->res;
    if (got > BUFFER - c->filled) return end(c);
    memcpy(c->in + c->filled, memory + (size_t)buffer * BUFFER_BYTES, got);
    c->filled += got;
    give_back(buffer);
    if (!c->receiving && !c->ended) receive(c);
    answer(c);
}

static void accepted(int fd) {
    int one = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    receive(c);
}

int main(int argc, char **argv) {
    if (argc < 2) DIE("usage: echo_uring PORT");
    int listener = listen_on_loopback((uint16_t)atoi(argv[1]));
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE, .cq_entries = 4 * ENTRIES};
    if (io_uring_queue_init_params(ENTRIES, &ring, &params)) DIE("no io_uring");
    buffers = aligned_alloc(4096, BUFFERS * sizeof(struct io_uring_buf));
    memory = aligned_alloc(4096, BUFFERS * BUFFER_BYTES);
    struct io_uring_buf_reg registration = {
        .ring_addr = (uint64_t)(uintptr_t)buffers, .ring_entries = BUFFERS, .bgid = GROUP};
    if (io_uring_register_buf_ring(&ring, &registration, 0)) DIE("no ring of buffers");
    io_uring_buf_ring_init(buffers);
    for (int buffer = 0; buffer < BUFFERS; buffer++) give_back(buffer);
    struct io_uring_sqe *sqe = entry();
    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, 0);
    io_uring_sqe_set_data64(sqe, 0);
    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;
        io_uring_for_each_cqe(&ring, head, cqe) {
            count++;
            uint64_t data = io_uring_cqe_get_data64(cqe);
            Connection *c = (Connection *)(uintptr_t)(data & ~(uint64_t)1);
            if (!c) accepted(cqe->res);
            else if (data & 1) sent(c, cqe->res);
            else received(c, cqe);
        }
        io_uring_cq_advance(&ring, count);
    }
}
