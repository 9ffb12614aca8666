// The bound of a durable commit over a socket: a server that takes commits of clients, appends them to an allocated file
// as groups, one at a time, syncs it with `fdatasync`, and replies. It keeps no documents, no indexes, no listeners.
// usage: sync_serve FILE PORT|SOCKET BYTES WAY
//   BYTES  of a commit in the log
//   WAY    inline: one thread does all; thread: another one writes and syncs, while the first reads on
// Prints "ready", and at SIGTERM the commits and the groups.
#define _GNU_SOURCE
#include "commits.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>

enum { FILE_BYTES = 64 << 20, BLOCK = 4096 };

static int file, begun, ended;
static char *copy;
static size_t length;
static off_t end;

// Whole blocks, one group after the other, and from the start of the file again.
static void append(const char *bytes) {
    size_t blocks = (length + BLOCK - 1) / BLOCK * BLOCK;
    if ((size_t)end + blocks > FILE_BYTES) end = 0;
    if (pwrite(file, bytes, length, end) != (ssize_t)length || fdatasync(file)) DIE("write failed");
    end += (off_t)blocks;
}

static void *append_groups(void *unused) {
    eventfd_t count;
    while (!eventfd_read(begun, &count)) {
        append(copy);
        eventfd_write(ended, 1);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 5) DIE("usage: sync_serve FILE PORT|SOCKET BYTES inline|thread");
    start_commits(atoi(argv[3]));
    int has_thread = !strcmp(argv[4], "thread");
    file = open(argv[1], O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (file < 0) DIE("cannot open %s", argv[1]);
    static char block[BLOCK];
    for (off_t at = 0; at < FILE_BYTES; at += BLOCK)
        if (pwrite(file, block, BLOCK, at) != BLOCK) DIE("write failed");
    fsync(file);
    int listener = listen_for_commits(argv[2]), loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN}, synced = {.events = EPOLLIN, .data.ptr = &ended}, events[EVENTS_MAX];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    if (has_thread) {
        copy = malloc((size_t)bytes_of_commit * WAITING_MAX);
        begun = eventfd(0, EFD_CLOEXEC);
        ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        epoll_ctl(loop, EPOLL_CTL_ADD, ended, &synced);
        pthread_t thread;
        if (pthread_create(&thread, NULL, append_groups, NULL)) DIE("no thread");
    }
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        int count = epoll_wait(loop, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &ended) {
                eventfd_t times;
                eventfd_read(ended, &times);
                reply_to_group();
            } else if (events[i].data.ptr) {
                take_commits(events[i].data.ptr);
            } else {
                accept_connection(listener, loop);
            }
        }
        if (sent_count || !waiting_count) continue;
        length = (size_t)begin_group();
        if (has_thread) {
            memcpy(copy, group, length);
            eventfd_write(begun, 1);
        } else {
            append(group);
            reply_to_group();
        }
    }
    print_groups();
    return 0;
}
