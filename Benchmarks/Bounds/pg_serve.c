// The bound of a leader of a cluster of Hearth: a server of one thread that takes commits of clients over TCP, appends them to a log in
// PostgreSQL as groups, one at a time, and replies when the group is durable. It keeps nothing: no documents, no indexes, no listeners.
// usage: pg_serve CONNECTION PORT BYTES [HOLD_US=0]
//   CONNECTION  a connection string; the schema `bound` is made anew there
//   BYTES       of a commit in the log
//   HOLD_US     a group waits so long at most for the clients of the group before it
// Prints "ready", and at SIGTERM the commits and the groups.
#define _GNU_SOURCE
#include "commits.h"
#include "pg_log.h"

static int returning;
static uint64_t sequence = 1, hold_ns, hold_until;

static void append_if_due(void) {
    if (sent_count || !waiting_count) return;
    if (hold_ns && waiting_count < returning && now_ns() < hold_until) return;
    int length = begin_group();
    send_group(++sequence, group, length);
}

static void reply(void) {
    returning = sent_count + waiting_count;
    reply_to_group();
    hold_until = now_ns() + hold_ns;
}

int main(int argc, char **argv) {
    if (argc < 4) DIE("usage: pg_serve CONNECTION PORT BYTES [HOLD_US=0]");
    start_commits(atoi(argv[3]));
    hold_ns = argc > 4 ? strtoull(argv[4], NULL, 10) * 1000 : 0;
    open_log(argv[1]);
    int listener = listen_for_commits(argv[2]), loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN}, database = {.events = EPOLLIN, .data.ptr = &connection}, events[EVENTS_MAX];
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
    epoll_ctl(loop, EPOLL_CTL_ADD, PQsocket(connection), &database);
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        uint64_t now = now_ns(), left = hold_until > now ? hold_until - now : 0;
        struct timespec time = {.tv_nsec = (long)left};
        int is_holding = hold_ns && !sent_count && waiting_count;
        int count = epoll_pwait2(loop, events, EVENTS_MAX, is_holding ? &time : NULL, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &connection) {
                if (!PQconsumeInput(connection)) DIE("the database has gone: %s", PQerrorMessage(connection));
                if (sent_count && !PQisBusy(connection)) {
                    take_reply();
                    reply();
                }
            } else if (events[i].data.ptr) {
                take_commits(events[i].data.ptr);
            } else {
                accept_connection(listener, loop);
            }
        }
        append_if_due();
    }
    print_groups();
    PQfinish(connection);
    return 0;
}
