// The bound of a leader of a cluster of Hearth: a server of one thread that takes commits of clients over TCP, appends them to a log in
// PostgreSQL as groups, one at a time, and replies when the group is durable. It keeps nothing: no documents, no indexes, no listeners.
// It speaks as much of Hearth's protocol (docs/protocol.md) as frame_load needs.
// usage: pg_serve CONNECTION PORT BYTES [HOLD_US=0]
//   CONNECTION  a connection string; the schema `bound` is made anew there
//   BYTES       of a commit in the log
//   HOLD_US     a group waits so long at most for the clients of the group before it
// Prints "ready", and at SIGTERM the commits and the groups.
#define _GNU_SOURCE
#include "frames.h"
#include "pg_log.h"
#include "protocol.h"
#include <signal.h>
#include <sys/epoll.h>

enum { MAGIC = 8, REPLY_BYTES = 32, WAITING_MAX = 4096 };

typedef struct {
    int fd, has_begun;
    size_t filled;
    uint8_t in[BUFFER];
} Connection;

typedef struct {
    Connection *from;
    uint32_t stream;
} Waiting;

static Waiting waiting[WAITING_MAX], sent[WAITING_MAX];
static int waiting_count, sent_count, returning, bytes_of_commit;
static volatile sig_atomic_t is_over;
static uint64_t sequence = 1, commits, groups, hold_ns, hold_until;
static char *group;

static void append_if_due(void) {
    if (sent_count || !waiting_count) return;
    if (hold_ns && waiting_count < returning && now_ns() < hold_until) return;
    memcpy(sent, waiting, sizeof(Waiting) * (size_t)waiting_count);
    sent_count = waiting_count;
    waiting_count = 0;
    send_group(++sequence, group, sent_count * bytes_of_commit);
    groups++;
}

static void reply(void) {
    uint8_t frame[FRAME_HEADER + REPLY_BYTES] = {0};
    uint32_t length = REPLY_BYTES;
    memcpy(frame, &length, 4);
    frame[4] = KIND_MESSAGE;
    frame[5] = FLAG_END;
    for (int i = 0; i < sent_count; i++) {
        memcpy(frame + 8, &sent[i].stream, 4);
        if (sent[i].from->fd >= 0 && write(sent[i].from->fd, frame, sizeof frame) != sizeof frame) DIE("a reply is not taken");
    }
    commits += (uint64_t)sent_count;
    returning = sent_count + waiting_count;
    hold_until = now_ns() + hold_ns;
    sent_count = 0;
}

static void serve(Connection *c) {
    ssize_t got = read(c->fd, c->in + c->filled, BUFFER - c->filled);
    if (got <= 0) {
        close(c->fd);
        c->fd = -1; // replies may still name it
        return;
    }
    c->filled += (size_t)got;
    size_t at = c->has_begun ? 0 : MAGIC;
    if (c->filled < at) return;
    c->has_begun = 1;
    while (c->filled - at >= FRAME_HEADER) {
        uint32_t length;
        memcpy(&length, c->in + at, 4);
        if (length > BUFFER / 2) DIE("a frame of %u bytes", length);
        if (c->filled - at < FRAME_HEADER + length) break;
        if (c->in[at + 4] == KIND_REQUEST) {
            if (waiting_count == WAITING_MAX) DIE("too many commits at once");
            size_t kept = length < (uint32_t)bytes_of_commit ? length : (size_t)bytes_of_commit;
            memcpy(group + (size_t)waiting_count * (size_t)bytes_of_commit, c->in + at + FRAME_HEADER, kept);
            waiting[waiting_count].from = c;
            memcpy(&waiting[waiting_count++].stream, c->in + at + 8, 4);
        }
        at += FRAME_HEADER + length;
    }
    if (at && at < c->filled) memmove(c->in, c->in + at, c->filled - at);
    c->filled -= at;
}

static void finish(int signal) { is_over = signal; }

int main(int argc, char **argv) {
    if (argc < 4) DIE("usage: pg_serve CONNECTION PORT BYTES [HOLD_US=0]");
    bytes_of_commit = atoi(argv[3]);
    hold_ns = argc > 4 ? strtoull(argv[4], NULL, 10) * 1000 : 0;
    if (bytes_of_commit < 1) DIE("bytes > 0");
    group = calloc(WAITING_MAX, (size_t)bytes_of_commit);
    open_log(argv[1]);
    int listener = listen_on_loopback((uint16_t)atoi(argv[2])), one = 1, loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN}, database = {.events = EPOLLIN, .data.ptr = &connection}, events[256];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    epoll_ctl(loop, EPOLL_CTL_ADD, PQsocket(connection), &database);
    struct sigaction action = {.sa_handler = finish};
    sigaction(SIGTERM, &action, NULL);
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        uint64_t now = now_ns(), left = hold_until > now ? hold_until - now : 0;
        struct timespec time = {.tv_nsec = (long)left};
        int is_holding = hold_ns && !sent_count && waiting_count, count = epoll_pwait2(loop, events, 256, is_holding ? &time : NULL, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &connection) {
                if (!PQconsumeInput(connection)) DIE("the database has gone: %s", PQerrorMessage(connection));
                if (sent_count && !PQisBusy(connection)) {
                    take_reply();
                    reply();
                }
            } else if (events[i].data.ptr) {
                serve(events[i].data.ptr);
            } else {
                int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd < 0) continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                Connection *c = calloc(1, sizeof *c);
                c->fd = fd;
                struct epoll_event added = {.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(loop, EPOLL_CTL_ADD, fd, &added);
            }
        }
        append_if_due();
    }
    printf("%llu commits in %llu groups: %.1f a group\n", (unsigned long long)commits, (unsigned long long)groups,
           groups ? (double)commits / (double)groups : 0.0);
    PQfinish(connection);
    return 0;
}
