// Load client of serializable transfers over the Hearth protocol (docs/protocol.md): one thread; every connection makes one
// transfer after the other. A transfer reads two accounts in a transaction and writes both, in two calls: BatchGetDocuments,
// which begins the transaction, and Commit. It begins again when it is aborted.
// usage: transfer_load PORT|SOCKET CONNECTIONS ACCOUNTS [SECONDS=1.5] [RUNS=3] [SERVER_PID]
// Prints the line of load.h, of whole transfers. Ends with status 1 if the sum of all accounts has changed.
#define _GNU_SOURCE
#include "frames.h"
#include "load.h"
#include "protocol.h"
#include "wire.h"

enum {
    ROOM = 1 << 18,
    NAME_ROOM = 128,
    TRANSACTION_ROOM = 64,
    ACCOUNTS_IN_CALL = 50, // a request of one frame
    OPENING_BALANCE = 1000
};

static const char DATABASE[] = "projects/bench/databases/(default)";

typedef struct {
    const uint8_t *bytes, *end;
} Slice;

typedef struct {
    int fd, is_committing;
    uint32_t next_stream;
    uint64_t began_at;
    unsigned account[2];
    int64_t balance[2];
    uint8_t transaction[TRANSACTION_ROOM]; // of the attempt under way, or of the aborted one before
    size_t transaction_length;
    uint8_t *in;
    size_t filled;
} Connection;

static unsigned accounts;
static uint64_t aborted;
// No transfer begins any more, and how many connections still make one.
static int is_ending, transferring;

static void write_name(char *out, unsigned account) { snprintf(out, NAME_ROOM, "%s/documents/accounts/%u", DATABASE, account); }

// MARK: Requests

static void put_slice(Back *b, unsigned tag, const uint8_t *bytes, size_t length) {
    size_t end = b->at;
    put(b, bytes, length);
    wrap(b, tag, end);
}

static void put_update(Back *b, unsigned account, int64_t balance) {
    char name[NAME_ROOM];
    write_name(name, account);
    size_t end = b->at;
    put_varint(b, (uint64_t)balance);
    put_byte(b, 0x10); // Value.integer_value
    put_entry(b, 0x12, "balance", end);
    put_string(b, 0x0a, name);
    wrap(b, 0x0a, end); // Write.update
    wrap(b, 0x12, end); // CommitRequest.writes
}

static void put_document(Back *b, unsigned account) {
    char name[NAME_ROOM];
    write_name(name, account);
    put_string(b, 0x12, name);
}

static void send_message(Connection *c, const Back *b, uint16_t method) {
    uint8_t frame[FRAME_HEADER + sizeof b->bytes];
    uint32_t length = (uint32_t)(sizeof b->bytes - b->at);
    write_request_header(frame, length, method, c->next_stream);
    memcpy(frame + FRAME_HEADER, b->bytes + b->at, length);
    c->next_stream += 2;
    if (write(c->fd, frame, FRAME_HEADER + length) != FRAME_HEADER + length) DIE("write: %s", strerror(errno));
}

// Reads both accounts in a new transaction. After an abort it names the attempt before, which keeps its turn.
static void send_reads(Connection *c) {
    Back b = {.at = sizeof b.bytes};
    size_t end = b.at;
    if (c->transaction_length) put_slice(&b, 0x0a, c->transaction, c->transaction_length); // ReadWrite.retry_transaction
    wrap(&b, 0x1a, end);                                                                   // TransactionOptions.read_write
    wrap(&b, 0x2a, end);                                                                   // BatchGetDocumentsRequest.new_transaction
    put_document(&b, c->account[1]);
    put_document(&b, c->account[0]);
    put_string(&b, 0x0a, DATABASE);
    c->is_committing = 0;
    send_message(c, &b, METHOD_BATCH_GET);
}

static void send_commit(Connection *c) {
    Back b = {.at = sizeof b.bytes};
    put_slice(&b, 0x1a, c->transaction, c->transaction_length); // CommitRequest.transaction
    put_update(&b, c->account[1], c->balance[1] + 1);
    put_update(&b, c->account[0], c->balance[0] - 1);
    put_string(&b, 0x0a, DATABASE);
    c->is_committing = 1;
    send_message(c, &b, METHOD_COMMIT);
}

static void begin_transfer(Connection *c) {
    c->account[0] = (unsigned)(next_random() % accounts);
    c->account[1] = (c->account[0] + 1 + (unsigned)(next_random() % (accounts - 1))) % accounts;
    c->transaction_length = 0;
    c->began_at = now_ns();
    send_reads(c);
}

// MARK: Replies

// The payload of the first length-delimited field `number` of a message; empty if there is none.
static Slice find(Slice message, unsigned number) {
    const uint8_t *at = message.bytes;
    while (at < message.end) {
        uint64_t tag = take_varint(&at, message.end), length = 0;
        if ((tag & 7) == 0) {
            take_varint(&at, message.end);
            continue;
        }
        if ((tag & 7) != 2) DIE("a field of wire type %u", (unsigned)(tag & 7));
        length = take_varint(&at, message.end);
        if (length > (uint64_t)(message.end - at)) DIE("a field that ends outside of its message");
        if (tag >> 3 == number) return (Slice){at, at + length};
        at += length;
    }
    return (Slice){message.end, message.end};
}

// The account and the balance of a BatchGetDocumentsResponse; 0 if it has no document.
static int take_document(Slice message, unsigned *account, int64_t *balance) {
    Slice found = find(message, 1);
    if (found.bytes == found.end) return 0;
    Slice name = find(found, 1), value = find(find(found, 2), 2);
    unsigned number = 0;
    const uint8_t *digit = name.end;
    while (digit > name.bytes && digit[-1] != '/') digit--;
    for (; digit < name.end; digit++) number = number * 10 + (*digit - '0');
    if (value.bytes == value.end || *value.bytes++ != 0x10) DIE("account %u has no balance", number);
    *account = number;
    *balance = (int64_t)take_varint(&value.bytes, value.end);
    return 1;
}

static void take_read(Connection *c, Slice message) {
    Slice transaction = find(message, 3);
    size_t length = (size_t)(transaction.end - transaction.bytes);
    if (length > TRANSACTION_ROOM) DIE("a transaction id of %zu bytes", length);
    if (length) memcpy(c->transaction, transaction.bytes, c->transaction_length = length);
    unsigned account;
    int64_t balance;
    if (!take_document(message, &account, &balance)) return;
    c->balance[account == c->account[1]] = balance;
}

static void end_call(Connection *c) {
    if (!c->is_committing) return send_commit(c);
    histogram[bucket_of(now_ns() - c->began_at)]++;
    replies++;
    if (is_ending) transferring--;
    else begin_transfer(c);
}

// One frame of the server: its kind, flags, code and payload.
typedef struct {
    uint8_t kind, flags;
    uint16_t code;
    Slice payload;
} Frame;

// Takes the next whole frame of what was received; returns its length, 0 if there is none.
static size_t next_frame(const Connection *c, size_t at, Frame *frame) {
    uint32_t length;
    if (c->filled - at < FRAME_HEADER) return 0;
    memcpy(&length, c->in + at, 4);
    if (length > ROOM - FRAME_HEADER) DIE("a frame of %u bytes", length);
    if (c->filled - at < FRAME_HEADER + length) return 0;
    const uint8_t *payload = c->in + at + FRAME_HEADER;
    *frame = (Frame){.kind = c->in[at + 4], .flags = c->in[at + 5], .payload = {payload, payload + length}};
    memcpy(&frame->code, c->in + at + 6, 2);
    if (frame->flags & FLAG_MORE) DIE("a message in parts");
    return FRAME_HEADER + length;
}

static void read_more(Connection *c) {
    ssize_t got = read(c->fd, c->in + c->filled, ROOM - c->filled);
    if (got <= 0) DIE("the server closed a connection");
    c->filled += (size_t)got;
}

static void drop(Connection *c, size_t count) {
    memmove(c->in, c->in + count, c->filled - count);
    c->filled -= count;
}

static void receive(void *connection) {
    Connection *c = connection;
    read_more(c);
    size_t at = 0, length;
    Frame frame;
    while ((length = next_frame(c, at, &frame))) {
        at += length;
        if (frame.kind == KIND_MESSAGE && !c->is_committing) take_read(c, frame.payload);
        if (frame.kind == KIND_STATUS && frame.code == STATUS_ABORTED) {
            aborted++;
            send_reads(c);
        } else if (frame.kind == KIND_STATUS && frame.code) {
            DIE("status %u: %.*s", frame.code, (int)(frame.payload.end - frame.payload.bytes), (const char *)frame.payload.bytes);
        } else if (frame.kind == KIND_STATUS || (frame.kind == KIND_MESSAGE && frame.flags & FLAG_END)) {
            end_call(c);
        }
    }
    drop(c, at);
}

// MARK: Before and after

static void connect_to(Connection *c, const char *where) {
    *c = (Connection){.fd = connect_to_hearth(where), .next_stream = 1, .in = malloc(ROOM)};
}

// Waits for the end of the call under way; returns the sum of the balances that came, if it reads.
static int64_t wait_for_end(Connection *c, int is_reading) {
    int64_t sum = 0, balance;
    unsigned account;
    for (;;) {
        Frame frame;
        size_t length;
        while (!(length = next_frame(c, 0, &frame))) read_more(c);
        if (frame.kind == KIND_STATUS && frame.code) DIE("status %u", frame.code);
        if (is_reading && frame.kind == KIND_MESSAGE && take_document(frame.payload, &account, &balance)) sum += balance;
        int is_end = frame.kind == KIND_STATUS || (frame.kind == KIND_MESSAGE && frame.flags & FLAG_END);
        drop(c, length);
        if (is_end) return sum;
    }
}

// Writes all accounts, or reads them and returns their sum.
static int64_t visit_accounts(Connection *c, int is_writing) {
    int64_t sum = 0;
    for (unsigned first = 0; first < accounts; first += ACCOUNTS_IN_CALL) {
        Back b = {.at = sizeof b.bytes};
        for (unsigned account = first; account < first + ACCOUNTS_IN_CALL && account < accounts; account++) {
            if (is_writing) put_update(&b, account, OPENING_BALANCE);
            else put_document(&b, account);
        }
        put_string(&b, 0x0a, DATABASE);
        send_message(c, &b, is_writing ? METHOD_COMMIT : METHOD_BATCH_GET);
        sum += wait_for_end(c, !is_writing);
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 4) DIE("usage: transfer_load PORT|SOCKET CONNECTIONS ACCOUNTS [SECONDS=1.5] [RUNS=3] [SERVER_PID]");
    int connections = atoi(argv[2]);
    accounts = (unsigned)atoi(argv[3]);
    double seconds = argc > 4 ? atof(argv[4]) : 1.5;
    int runs = argc > 5 ? atoi(argv[5]) : 3, pid = argc > 6 ? atoi(argv[6]) : 0;
    if (connections < 1 || accounts < 2 || runs < 1 || runs > MAX_RUNS) DIE("connections > 0, accounts > 1, runs 1...%d", MAX_RUNS);
    Connection bank;
    connect_to(&bank, argv[1]);
    visit_accounts(&bank, 1);

    int loop = epoll_create1(0);
    Connection *all = calloc((size_t)connections, sizeof *all);
    for (int i = 0; i < connections; i++) {
        connect_to(&all[i], argv[1]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(loop, EPOLL_CTL_ADD, all[i].fd, &event);
        begin_transfer(&all[i]);
    }
    measure(loop, receive, connections, 1, seconds, runs, pid);

    // The accounts are read in several calls, so nothing may change them meanwhile.
    is_ending = 1;
    transferring = connections;
    while (transferring) {
        struct epoll_event event;
        if (epoll_wait(loop, &event, 1, -1) == 1) receive(event.data.ptr);
    }
    int64_t sum = visit_accounts(&bank, 0);
    if (sum != (int64_t)accounts * OPENING_BALANCE) DIE("the transfers changed the total to %lld", (long long)sum);
    fprintf(stderr, "%llu attempts were aborted\n", (unsigned long long)aborted);
    return 0;
}
