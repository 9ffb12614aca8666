// What LMDB itself can do, without anything around it: keys of 39 bytes ("library/main/books/" and a
// 20-character id), values of a chosen size.
//
// usage: lmdb_limits COMMAND DIR [name=value ...]
//   load   docs value order index          makes DIR/base with that many documents and prints its size
//   get    docs value order threads txn    random reads of DIR/base; txn=renew (one per get) or one
//   scan   docs value threads              cursor over all of DIR/base
//   bulk   docs value order batch index sync sorted
//          loads an empty store and syncs it at the end; sorted=1 sorts all keys first and appends them
//   put    docs value order batch sync writemap index secs limit
//          inserts new documents into a fresh copy of DIR/base, `batch` per committed transaction
// names: docs=1000000 value=200 order=random|sequential|append index=0 (60-byte index entries per
//   document) batch=1 sync=sync|nometa|nosync writemap=0 threads=1 txn=renew secs=2 limit=400000 runs=5 sorted=0
//   lock=0 (1: the store's pages are locked in memory) copy=4 (KiB a write when DIR/base is copied, at most 1024)
// Each line printed: what, median over the runs, min, max, unit.
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_LENGTH = 19, KEY_LENGTH = PREFIX_LENGTH + ID_LENGTH, INDEX_KEY_LENGTH = 60, MAX_VALUE = 65536, MAX_RUNS = 64 };
typedef enum { RANDOM_ORDER, SEQUENTIAL, APPEND } Order;

static struct {
    const char *dir;
    uint64_t docs, limit;
    size_t value, copy;
    Order order;
    int index, batch, sync, writemap, threads, one_txn, runs, sorted, lock;
    double secs;
} options = {.docs = 1000000, .limit = 400000, .value = 200, .batch = 1, .threads = 1, .runs = 5, .secs = 2, .copy = 4};

static const char *const order_names[] = {"random", "sequential", "append"};
static const char *const sync_names[] = {"sync", "nometa", "nosync"};
static const unsigned sync_flags[] = {0, MDB_NOMETASYNC, MDB_NOSYNC};

static void check(int rc, const char *what) {
    if (rc) DIE("%s: %s", what, mdb_strerror(rc));
}

static void write_key(char *out, uint64_t number) {
    memcpy(out, "library/main/books/", PREFIX_LENGTH);
    if (options.order == RANDOM_ORDER) write_random_id(out + PREFIX_LENGTH, number);
    else write_sequential_id(out + PREFIX_LENGTH, number);
}

// An index entry: an index number, an encoded field value and the document's id.
static void write_index_key(char *out, uint64_t number, int slot) {
    memset(out, 'f', INDEX_KEY_LENGTH);
    out[0] = (char)('a' + slot);
    write_random_id(out + 12, number * 64 + (uint64_t)slot);
    write_random_id(out + INDEX_KEY_LENGTH - ID_LENGTH, number);
}

typedef struct {
    MDB_env *env;
    MDB_dbi docs, index;
} Store;

// Copies a file by plain reads and writes, which leave it in the page cache; with no target, only reads it.
// Writes of options.copy KiB: ext4 keeps a larger write as one large folio, and a later 4 KiB write into a
// large folio costs more, so 4 (the size LMDB writes) is the default.
static void copy_file(const char *from, const char *to) {
    static char block[1 << 20];
    size_t size = to ? options.copy << 10 : sizeof block;
    int in = open(from, O_RDONLY), out = to ? open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (in < 0 || (to && out < 0)) DIE("cannot copy %s", from);
    for (ssize_t got; (got = read(in, block, size)) > 0;)
        if (to && write(out, block, (size_t)got) != got) DIE("write failed");
    close(in);
    if (to) close(out);
}

static Store open_store(const char *name, unsigned flags) {
    Store store;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", options.dir, name);
    mkdir(options.dir, 0700);
    mkdir(path, 0700);
    check(mdb_env_create(&store.env), "create");
    check(mdb_env_set_mapsize(store.env, (size_t)48 << 30), "mapsize");
    check(mdb_env_set_maxdbs(store.env, 4), "maxdbs");
    check(mdb_env_set_maxreaders(store.env, 64), "maxreaders");
    check(mdb_env_open(store.env, path, flags | MDB_NOTLS | MDB_NORDAHEAD, 0600), "open");
    MDB_txn *txn;
    check(mdb_txn_begin(store.env, NULL, 0, &txn), "begin");
    check(mdb_dbi_open(txn, "docs", MDB_CREATE, &store.docs), "docs");
    check(mdb_dbi_open(txn, "index", MDB_CREATE, &store.index), "index");
    check(mdb_txn_commit(txn), "commit");
    return store;
}

// Reads a store in; under options.lock its pages then stay in memory.
static void warm(Store *store) {
    MDB_txn *txn;
    check(mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn), "begin");
    for (int i = 0; i < 2; i++) {
        MDB_cursor *cursor;
        MDB_val key, value;
        check(mdb_cursor_open(txn, i ? store->index : store->docs, &cursor), "cursor");
        while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {}
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
}

static void remove_store(const char *name) {
    char path[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", options.dir, name, i ? "lock.mdb" : "data.mdb");
        unlink(path);
    }
}

static void put_documents(Store *store, uint64_t first, uint64_t count, int append) {
    static char value_bytes[MAX_VALUE], key_bytes[KEY_LENGTH], index_bytes[INDEX_KEY_LENGTH];
    MDB_txn *txn;
    check(mdb_txn_begin(store->env, NULL, 0, &txn), "begin");
    for (uint64_t i = first; i < first + count; i++) {
        write_key(key_bytes, i);
        memcpy(value_bytes, &i, sizeof i);
        MDB_val key = {KEY_LENGTH, key_bytes}, value = {options.value, value_bytes};
        check(mdb_put(txn, store->docs, &key, &value, append ? MDB_APPEND : 0), "put");
        for (int slot = 0; slot < options.index; slot++) {
            write_index_key(index_bytes, i, slot);
            MDB_val index_key = {INDEX_KEY_LENGTH, index_bytes}, empty = {0, NULL};
            check(mdb_put(txn, store->index, &index_key, &empty, 0), "put index");
        }
    }
    check(mdb_txn_commit(txn), "commit");
}

static void print_size(Store *store, uint64_t docs) {
    MDB_envinfo info;
    MDB_stat stat;
    MDB_txn *txn;
    check(mdb_env_info(store->env, &info), "info");
    check(mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn), "begin");
    check(mdb_stat(txn, store->docs, &stat), "stat");
    double bytes = (double)(info.me_last_pgno + 1) * stat.ms_psize;
    double tree = (double)(stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
    printf("size: file %.1f MB, %.1f B/doc; docs tree %.1f B/doc, depth %u, %zu leaf, %zu overflow pages", bytes / 1e6,
           bytes / (double)docs, tree / (double)docs, stat.ms_depth, stat.ms_leaf_pages, stat.ms_overflow_pages);
    check(mdb_stat(txn, store->index, &stat), "stat");
    tree = (double)(stat.ms_branch_pages + stat.ms_leaf_pages) * stat.ms_psize;
    if (stat.ms_entries) printf("; index tree %.1f B/entry", tree / (double)stat.ms_entries);
    printf("\n");
    mdb_txn_abort(txn);
}

static void load(void) {
    remove_store("base");
    Store store = open_store("base", MDB_NOSYNC);
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < options.docs; i += 20000) put_documents(&store, i, options.docs - i < 20000 ? options.docs - i : 20000, options.order == APPEND);
    double seconds = seconds_since(start);
    check(mdb_env_sync(store.env, 1), "sync");
    printf("load %s value=%zu index=%d: %.0f docs/s\n", order_names[options.order], options.value, options.index, (double)options.docs / seconds);
    print_size(&store, options.docs);
    mdb_env_close(store.env);
}

static int compare_keys(const void *a, const void *b) { return memcmp(a, b, KEY_LENGTH); }
static int compare_index_keys(const void *a, const void *b) { return memcmp(a, b, INDEX_KEY_LENGTH); }

// Appends `count` sorted keys of `size` bytes, `options.batch` per transaction.
static void append_sorted(Store *store, MDB_dbi tree, const char *keys, size_t size, uint64_t count, size_t value_size) {
    static char value_bytes[MAX_VALUE];
    for (uint64_t i = 0; i < count;) {
        MDB_txn *txn;
        check(mdb_txn_begin(store->env, NULL, 0, &txn), "begin");
        for (int n = 0; n < options.batch && i < count; n++, i++) {
            MDB_val key = {size, (void *)(keys + i * size)}, value = {value_size, value_bytes};
            check(mdb_put(txn, tree, &key, &value, MDB_APPEND), "append");
        }
        check(mdb_txn_commit(txn), "commit");
    }
}

static void bulk_sorted(Store *store) {
    size_t entries = options.docs * (size_t)options.index;
    char *keys = malloc(options.docs * KEY_LENGTH), *index_keys = malloc(entries * INDEX_KEY_LENGTH + 1);
    for (uint64_t i = 0; i < options.docs; i++) {
        write_key(keys + i * KEY_LENGTH, i);
        for (int slot = 0; slot < options.index; slot++)
            write_index_key(index_keys + (i * (size_t)options.index + (size_t)slot) * INDEX_KEY_LENGTH, i, slot);
    }
    qsort(keys, options.docs, KEY_LENGTH, compare_keys);
    qsort(index_keys, entries, INDEX_KEY_LENGTH, compare_index_keys);
    append_sorted(store, store->docs, keys, KEY_LENGTH, options.docs, options.value);
    append_sorted(store, store->index, index_keys, INDEX_KEY_LENGTH, entries, 0);
    free(keys);
    free(index_keys);
}

static void bulk(void) {
    double rates[MAX_RUNS];
    char label[160];
    for (int run = 0; run < options.runs; run++) {
        remove_store("bulk");
        sync();
        Store store = open_store("bulk", sync_flags[options.sync] | (options.writemap ? MDB_WRITEMAP : 0));
        uint64_t start = now_ns(), batch = (uint64_t)options.batch;
        if (options.sorted) bulk_sorted(&store);
        else
            for (uint64_t i = 0; i < options.docs; i += batch)
                put_documents(&store, i, options.docs - i < batch ? options.docs - i : batch, options.order == APPEND);
        check(mdb_env_sync(store.env, 1), "sync");
        rates[run] = (double)options.docs / seconds_since(start);
        if (run == options.runs - 1) print_size(&store, options.docs);
        mdb_env_close(store.env);
        remove_store("bulk");
    }
    snprintf(label, sizeof label, "bulk %s%s value=%zu batch=%d index=%d %s", order_names[options.order], options.sorted ? " sorted first" : "",
             options.value, options.batch, options.index, sync_names[options.sync]);
    print_spread(label, rates, (size_t)options.runs, "docs/s");
}

typedef struct {
    Store *store;
    uint64_t seed, done, touched;
    double rate;
} Reader;

static void *read_random(void *argument) {
    Reader *reader = argument;
    MDB_txn *txn;
    check(mdb_txn_begin(reader->store->env, NULL, MDB_RDONLY, &txn), "begin");
    char key_bytes[KEY_LENGTH];
    uint64_t start = now_ns(), state = reader->seed, limit = (uint64_t)(options.secs * 1e9);
    while (now_ns() - start < limit)
        for (int i = 0; i < 1000; i++) {
            write_key(key_bytes, mix64(state++) % options.docs);
            MDB_val key = {KEY_LENGTH, key_bytes}, value;
            if (!options.one_txn) {
                mdb_txn_reset(txn);
                check(mdb_txn_renew(txn), "renew");
            }
            check(mdb_get(txn, reader->store->docs, &key, &value), "get");
            reader->touched += ((unsigned char *)value.mv_data)[0] + ((unsigned char *)value.mv_data)[value.mv_size - 1];
            reader->done++;
        }
    reader->rate = (double)reader->done / seconds_since(start);
    mdb_txn_abort(txn);
    return NULL;
}

static void *read_range(void *argument) {
    Reader *reader = argument;
    MDB_txn *txn;
    MDB_cursor *cursor;
    check(mdb_txn_begin(reader->store->env, NULL, MDB_RDONLY, &txn), "begin");
    check(mdb_cursor_open(txn, reader->store->docs, &cursor), "cursor");
    uint64_t start = now_ns(), limit = (uint64_t)(options.secs * 1e9);
    while (now_ns() - start < limit) {
        MDB_val key, value;
        int rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
        while (!rc) {
            reader->touched += ((unsigned char *)value.mv_data)[0] + ((unsigned char *)key.mv_data)[KEY_LENGTH - 1];
            reader->done++;
            rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
    }
    reader->rate = (double)reader->done / seconds_since(start);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return NULL;
}

static void read_base(void *(*body)(void *), const char *what) {
    char path[4096];
    snprintf(path, sizeof path, "%s/base/data.mdb", options.dir);
    copy_file(path, NULL);
    Store store = open_store("base", 0);
    warm(&store);
    double rates[MAX_RUNS];
    for (int run = 0; run < options.runs; run++) {
        pthread_t threads[16];
        Reader readers[16] = {0};
        for (int i = 0; i < options.threads; i++) {
            readers[i] = (Reader){.store = &store, .seed = (uint64_t)(run * 16 + i) << 40};
            pthread_create(&threads[i], NULL, body, &readers[i]);
        }
        rates[run] = 0;
        for (int i = 0; i < options.threads; i++) {
            pthread_join(threads[i], NULL);
            rates[run] += readers[i].rate;
        }
    }
    char label[128];
    snprintf(label, sizeof label, "%s value=%zu threads=%d%s", what, options.value, options.threads,
             body == read_range ? "" : options.one_txn ? " one txn" : " renewed txn");
    print_spread(label, rates, (size_t)options.runs, "entries/s");
    mdb_env_close(store.env);
}

static void copy_base(void) {
    char from[4096], to[4096];
    remove_store("work");
    snprintf(to, sizeof to, "%s/work", options.dir);
    mkdir(to, 0700);
    snprintf(from, sizeof from, "%s/base/data.mdb", options.dir);
    snprintf(to, sizeof to, "%s/work/data.mdb", options.dir);
    copy_file(from, to);
    sync();
}

static void put(void) {
    double rates[MAX_RUNS], p50[MAX_RUNS], p99[MAX_RUNS];
    uint64_t *samples = malloc(options.limit * sizeof *samples), next = options.docs;
    copy_base();
    Store store = open_store("work", sync_flags[options.sync] | (options.writemap ? MDB_WRITEMAP : 0));
    warm(&store);
    for (int run = 0; run < options.runs; run++) {
        size_t commits = 0;
        uint64_t done = 0, start = now_ns(), previous = start, limit = start + (uint64_t)(options.secs * 1e9);
        while (done < options.limit && previous < limit) {
            put_documents(&store, next, (uint64_t)options.batch, options.order == APPEND);
            next += (uint64_t)options.batch;
            done += (uint64_t)options.batch;
            uint64_t now = now_ns();
            samples[commits++] = now - previous;
            previous = now;
        }
        rates[run] = (double)done / seconds_since(start);
        qsort(samples, commits, sizeof *samples, compare_u64);
        p50[run] = (double)percentile(samples, commits, 0.5) / 1e3;
        p99[run] = (double)percentile(samples, commits, 0.99) / 1e3;
    }
    char label[128];
    int at = snprintf(label, sizeof label, "put %s value=%zu batch=%d %s%s", order_names[options.order], options.value, options.batch,
                      sync_names[options.sync], options.writemap ? " writemap" : "");
    if (options.index) at += snprintf(label + at, sizeof label - (size_t)at, " index=%d", options.index);
    if (options.lock) at += snprintf(label + at, sizeof label - (size_t)at, " locked");
    if (options.copy != 4) at += snprintf(label + at, sizeof label - (size_t)at, " copy=%zu", options.copy);
    print_spread(label, rates, (size_t)options.runs, "docs/s");
    snprintf(label + at, sizeof label - (size_t)at, " p50");
    print_spread(label, p50, (size_t)options.runs, "us/commit");
    snprintf(label + at, sizeof label - (size_t)at, " p99");
    print_spread(label, p99, (size_t)options.runs, "us/commit");
    mdb_env_close(store.env);
    remove_store("work");
    free(samples);
}

static int index_of(const char *value, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(value, names[i])) return i;
    DIE("unknown value %s", value);
}

static void set_option(const char *text) {
    const char *value = strchr(text, '=');
    if (!value) DIE("expected name=value, not %s", text);
    size_t length = (size_t)(value++ - text);
#define IS(name) (length == strlen(name) && !strncmp(text, name, length))
    if (IS("docs")) options.docs = strtoull(value, NULL, 10);
    else if (IS("limit")) options.limit = strtoull(value, NULL, 10);
    else if (IS("value")) options.value = strtoull(value, NULL, 10);
    else if (IS("order")) options.order = (Order)index_of(value, order_names, 3);
    else if (IS("sync")) options.sync = index_of(value, sync_names, 3);
    else if (IS("index")) options.index = atoi(value);
    else if (IS("batch")) options.batch = atoi(value);
    else if (IS("writemap")) options.writemap = atoi(value);
    else if (IS("threads")) options.threads = atoi(value);
    else if (IS("txn")) options.one_txn = !strcmp(value, "one");
    else if (IS("sorted")) options.sorted = atoi(value);
    else if (IS("lock")) options.lock = atoi(value);
    else if (IS("copy")) options.copy = strtoull(value, NULL, 10);
    else if (IS("runs")) options.runs = atoi(value);
    else if (IS("secs")) options.secs = atof(value);
    else DIE("unknown option %s", text);
#undef IS
}

int main(int argc, char **argv) {
    if (argc < 3) DIE("usage: lmdb_limits load|get|scan|bulk|put DIR [name=value ...]");
    options.dir = argv[2];
    for (int i = 3; i < argc; i++) set_option(argv[i]);
    if (options.lock && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) DIE("cannot lock memory; run with lock=0");
    if (!strcmp(argv[1], "load")) load();
    else if (!strcmp(argv[1], "get")) read_base(read_random, "get");
    else if (!strcmp(argv[1], "scan")) read_base(read_range, "scan");
    else if (!strcmp(argv[1], "bulk")) bulk();
    else if (!strcmp(argv[1], "put")) put();
    else DIE("unknown command %s", argv[1]);
    return 0;
}
