// Writes the entries of Hearth's documents into RocksDB: what a store of merged sorted runs takes for them on this machine.
// usage: rocksdb_load DIRECTORY ENTRIES DOCUMENTS FORM
//   ENTRIES    the file of `hearth-bench entries`: for each entry the bytes of key and value (4 each, little-endian), key, value
//   DOCUMENTS  how many documents the entries belong to
//   FORM       level      one thread writes batches, each synced
//              universal  the same with the other compaction
//              threads    two threads, each sorts its batches before it writes them; pipelined writes, larger memtables
//              ingest     two threads sort entries into files of tables, which RocksDB takes over
// A batch has the entries of 500 documents, and its write is synced, as a batch of `hearth load` is. RocksDB has two threads for
// flushes and compactions, filters of 10 bits a key, and no compression, like Hearth. Prints the documents per second until all are
// written and until they are compacted too, the bytes that the process wrote and the bytes of the directory's tables.
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DOCUMENTS_IN_A_BATCH = 500, MEMTABLE_BYTES = 64 << 20, FILE_BYTES = 64 << 20, THREADS_MAX = 2 };

typedef struct {
    const uint8_t *key;
    uint32_t key_bytes, value_bytes;
} entry;

static rocksdb_t *db;
static rocksdb_options_t *options;
static const char *directory;
static entry *entries;
static uint64_t total, in_a_unit;
static _Atomic uint64_t next_unit;
static int is_sorting;

static void check(char *error) {
    if (error) DIE("rocksdb: %s", error);
}

static uint64_t bytes_written(void) {
    FILE *file = fopen("/proc/self/io", "r");
    char line[128];
    unsigned long long bytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "write_bytes: %llu", &bytes) == 1) break;
    if (file) fclose(file);
    return bytes;
}

static void set_options(const char *form) {
    options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_error_if_exists(options, 1);
    rocksdb_options_increase_parallelism(options, 2);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(options, is_sorting ? 2 * MEMTABLE_BYTES : MEMTABLE_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, 3);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_enable_pipelined_write(options, is_sorting);
    if (!strcmp(form, "universal")) rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, table);
}

// Finds the entries of the file.
static void read_entries(const char *path) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) || !status.st_size) DIE("cannot read the entries");
    size_t size = (size_t)status.st_size;
    const uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (bytes == MAP_FAILED) DIE("cannot map the entries");
    for (size_t at = 0, room = 0; at < size; total++) {
        if (total == room && !(entries = realloc(entries, (room = room * 2 + 1024) * sizeof *entries))) DIE("no memory");
        entry *found = &entries[total];
        memcpy(&found->key_bytes, bytes + at, 4);
        memcpy(&found->value_bytes, bytes + at + 4, 4);
        found->key = bytes + at + 8;
        at += 8 + (size_t)found->key_bytes + found->value_bytes;
    }
}

static int compare_entries(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes);
    return order ? order : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

// The entries of the next batch or file, sorted if that is the form; their number, 0 at the end.
static uint64_t take_unit(entry **first) {
    uint64_t start = atomic_fetch_add(&next_unit, 1) * in_a_unit;
    if (start >= total) return 0;
    uint64_t count = total - start < in_a_unit ? total - start : in_a_unit;
    *first = entries + start;
    if (is_sorting) qsort(*first, count, sizeof **first, compare_entries);
    return count;
}

static void *write_batches(void *unused) {
    (void)unused;
    rocksdb_writeoptions_t *synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(synced, 1);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    entry *unit;
    for (uint64_t count; (count = take_unit(&unit));) {
        rocksdb_writebatch_clear(batch);
        for (uint64_t i = 0; i < count; i++) {
            const char *key = (const char *)unit[i].key;
            rocksdb_writebatch_put(batch, key, unit[i].key_bytes, key + unit[i].key_bytes, unit[i].value_bytes);
        }
        char *error = NULL;
        rocksdb_write(db, synced, batch, &error);
        check(error);
    }
    return NULL;
}

static void *ingest_files(void *number) {
    rocksdb_envoptions_t *environment = rocksdb_envoptions_create();
    rocksdb_ingestexternalfileoptions_t *moved = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(moved, 1);
    entry *unit;
    int written = 0;
    for (uint64_t count; (count = take_unit(&unit));) {
        char path[4096], *error = NULL;
        snprintf(path, sizeof path, "%s/ingested-%d-%d", directory, *(int *)number, written++);
        rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(environment, options);
        rocksdb_sstfilewriter_open(writer, path, &error);
        check(error);
        for (uint64_t i = 0; i < count; i++) {
            const char *key = (const char *)unit[i].key;
            rocksdb_sstfilewriter_put(writer, key, unit[i].key_bytes, key + unit[i].key_bytes, unit[i].value_bytes, &error);
            check(error);
        }
        rocksdb_sstfilewriter_finish(writer, &error); // It syncs the file.
        check(error);
        rocksdb_sstfilewriter_destroy(writer);
        const char *const files[] = {path};
        rocksdb_ingest_external_file(db, files, 1, moved, &error);
        check(error);
    }
    return NULL;
}

static uint64_t property(const char *name) {
    uint64_t value = 0;
    if (rocksdb_property_int(db, name, &value)) DIE("rocksdb has no %s", name);
    return value;
}

// Waits until a second has passed in which nothing was flushed or compacted.
static void wait_for_compactions(void) {
    for (int idle = 0; idle < 20; usleep(50000))
        idle = property("rocksdb.num-running-compactions") || property("rocksdb.num-running-flushes") ||
                       property("rocksdb.compaction-pending") || property("rocksdb.mem-table-flush-pending")
                   ? 0
                   : idle + 1;
}

int main(int argc, char **argv) {
    if (argc != 5) DIE("usage: rocksdb_load DIRECTORY ENTRIES DOCUMENTS level|universal|threads|ingest");
    const char *form = argv[4];
    int is_ingesting = !strcmp(form, "ingest");
    is_sorting = is_ingesting || !strcmp(form, "threads");
    if (!is_sorting && strcmp(form, "level") && strcmp(form, "universal")) DIE("no such form: %s", form);
    directory = argv[1];
    double documents = strtod(argv[3], NULL);
    read_entries(argv[2]);
    uint64_t data = 0;
    for (uint64_t i = 0; i < total; i++) data += entries[i].key_bytes + entries[i].value_bytes;
    in_a_unit = is_ingesting ? (uint64_t)((double)FILE_BYTES * (double)total / (double)data)
                             : (uint64_t)((double)total * DOCUMENTS_IN_A_BATCH / documents) + 1;

    char *error = NULL;
    set_options(form);
    db = rocksdb_open(options, directory, &error);
    check(error);
    int threads = is_sorting ? THREADS_MAX : 1, numbers[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    uint64_t start = now_ns();
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        if (pthread_create(&ids[i], NULL, is_ingesting ? ingest_files : write_batches, &numbers[i])) DIE("no thread");
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    double written = seconds_since(start);
    wait_for_compactions();
    double compacted = seconds_since(start) - 1;
    printf("rocksdb %s: %.0f documents/s, %.0f until compacted, %.1f entries a document, %.0f bytes of keys and values a document, "
           "%.0f MB written, %.0f MB of tables\n",
           form, documents / written, documents / (compacted > written ? compacted : written), (double)total / documents,
           (double)data / documents, (double)bytes_written() / 1e6, (double)property("rocksdb.total-sst-files-size") / 1e6);
    rocksdb_close(db);
    return 0;
}
