// What the servers share that take the commits of frame_load and keep nothing of them but a log: connections, the group
// that waits, and replies. They speak as much of Hearth's protocol (docs/protocol.md) as frame_load needs.
#ifndef HEARTH_COMMITS_H
#define HEARTH_COMMITS_H

#include "frames.h"
#include "protocol.h"
#include <signal.h>
#include <sys/epoll.h>

enum { MAGIC = 8, REPLY_BYTES = 32, WAITING_MAX = 4096, EVENTS_MAX = 256 };

typedef struct {
    int fd, has_begun;
    size_t filled;
    uint8_t in[BUFFER];
} Connection;

// A commit without a reply.
typedef struct {
    Connection *from;
    uint32_t stream;
} Waiting;

// The commits that wait to be appended, and those of the group that is being appended.
static Waiting waiting[WAITING_MAX], sent[WAITING_MAX];
static int waiting_count, sent_count, bytes_of_commit;
// The bytes of those that wait, `bytes_of_commit` each.
static char *group;
static uint64_t commits, groups;
static volatile sig_atomic_t is_over;

static void finish(int signal) { is_over = signal; }

static void start_commits(int bytes) {
    if (bytes < 1) DIE("bytes > 0");
    bytes_of_commit = bytes;
    group = calloc(WAITING_MAX, (size_t)bytes);
    struct sigaction action = {.sa_handler = finish};
    sigaction(SIGTERM, &action, NULL);
}

// A listener at a port of loopback, or at a Unix socket, whose path has a slash.
static int listen_for_commits(const char *where) {
    if (!strchr(where, '/')) return listen_on_loopback((uint16_t)atoi(where));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(where) >= sizeof address.sun_path) DIE("the path is too long: %s", where);
    strcpy(address.sun_path, where);
    unlink(where);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024)) DIE("cannot listen at %s", where);
    return fd;
}

static void accept_connection(int listener, int loop) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    struct epoll_event added = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &added);
}

// Reads what a connection has sent; its commits wait.
static void take_commits(Connection *c) {
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

// What waits becomes the group that is sent; its bytes are the first ones of `group` until the next commit is taken.
static int begin_group(void) {
    memcpy(sent, waiting, sizeof(Waiting) * (size_t)waiting_count);
    sent_count = waiting_count;
    waiting_count = 0;
    groups++;
    return sent_count * bytes_of_commit;
}

// Replies to the group that was sent.
static void reply_to_group(void) {
    uint8_t frame[FRAME_HEADER + REPLY_BYTES] = {0};
    uint32_t length = REPLY_BYTES;
    memcpy(frame, &length, 4);
    frame[4] = KIND_MESSAGE;
    frame[5] = FLAG_END;
    for (int i = 0; i < sent_count; i++) {
        if (sent[i].from->fd < 0) continue;
        memcpy(frame + 8, &sent[i].stream, 4);
        ssize_t taken = send(sent[i].from->fd, frame, sizeof frame, MSG_NOSIGNAL);
        // A client that has left takes none.
        if (taken < 0 ? errno == EAGAIN : taken != sizeof frame) DIE("a reply is not taken");
    }
    commits += (uint64_t)sent_count;
    sent_count = 0;
}

static void print_groups(void) {
    printf("%llu commits in %llu groups: %.1f a group\n", (unsigned long long)commits, (unsigned long long)groups,
           groups ? (double)commits / (double)groups : 0.0);
}

#endif
