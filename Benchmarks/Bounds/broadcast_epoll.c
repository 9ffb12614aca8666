// Fan-out floor: one thread, level-triggered epoll. A byte from any connection has the bytes of FILE written to all
// other connections, each with one write if its socket takes them.
// usage: broadcast_epoll PORT FILE    serves on 127.0.0.1 until killed
#define _GNU_SOURCE
#include "frames.h"
#include <sys/epoll.h>

enum { CONNECTIONS_MAX = 32768 };

typedef struct {
    int fd;
    uint32_t place;
    size_t owed; // bytes that are still to be written
} Connection;

static int loop, listener;
static Connection *connections[CONNECTIONS_MAX];
static uint32_t count;
static uint8_t *message;
static size_t message_length;

static void watch(Connection *c, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(loop, operation, c->fd, &event);
}

static void end(Connection *c) {
    connections[c->place] = connections[--count];
    connections[c->place]->place = c->place;
    close(c->fd);
    free(c);
}

// Writes what is owed. A socket that fails is closed when it is read.
static void deliver(Connection *c) {
    while (c->owed) {
        size_t rest = (c->owed - 1) % message_length + 1;
        ssize_t wrote = write(c->fd, message + message_length - rest, rest);
        if (wrote < 0) break;
        c->owed -= (size_t)wrote;
    }
    if (!c->owed) watch(c, EPOLLIN, EPOLL_CTL_MOD);
}

// Accepts the connections that wait.
static void accept_all(void) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (count == CONNECTIONS_MAX) DIE("too many connections");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Connection *c = malloc(sizeof *c);
        *c = (Connection){.fd = fd, .place = count};
        connections[count++] = c;
        watch(c, EPOLLIN, EPOLL_CTL_ADD);
    }
}

static void broadcast(Connection *from) {
    accept_all();
    for (uint32_t i = 0; i < count; i++) {
        Connection *c = connections[i];
        if (c == from) continue;
        int was_blocked = c->owed > 0;
        c->owed += message_length;
        if (was_blocked) continue;
        ssize_t wrote = write(c->fd, message, message_length);
        if (wrote > 0) c->owed -= (size_t)wrote;
        if (c->owed) watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
    }
}

static void serve(Connection *c, uint32_t events) {
    uint8_t in[64];
    if (events & EPOLLOUT) deliver(c);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    ssize_t got = read(c->fd, in, sizeof in);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return end(c);
    for (ssize_t i = 0; i < got; i++) broadcast(c);
}

int main(int argc, char **argv) {
    if (argc < 3) DIE("usage: broadcast_epoll PORT FILE");
    FILE *file = fopen(argv[2], "r");
    if (!file) DIE("cannot read %s", argv[2]);
    fseek(file, 0, SEEK_END);
    message_length = (size_t)ftell(file);
    rewind(file);
    message = malloc(message_length + 1);
    if (!message_length || fread(message, 1, message_length, file) != message_length) DIE("%s is empty", argv[2]);
    listener = listen_on_loopback((uint16_t)atoi(argv[1]));
    loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN}, events[256];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(loop, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr) serve(events[i].data.ptr, events[i].events);
            else accept_all();
        }
    }
}
