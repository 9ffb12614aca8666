// Writes the entries of Hearth's documents into RocksDB: what a store of merged sorted runs takes for them on this machine.
// usage: rocksdb_load DIRECTORY ENTRIES DOCUMENTS level|universal
//   ENTRIES    the file of `hearth-bench entries`: for each entry the bytes of key and value (4 each, little-endian), key, value
//   DOCUMENTS  how many documents the entries belong to
// A batch has the entries of 500 documents, and its write is synced, as a batch of `hearth load` is. RocksDB has two threads for
// flushes and compactions, filters of 10 bits a key, and no compression, like Hearth. Prints the documents per second, the
// bytes that the process wrote and the bytes of the directory's tables.
#include "common.h"
#include <fcntl.h>
#include <rocksdb/c.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { DOCUMENTS_IN_A_BATCH = 500, MEMTABLE_BYTES = 64 << 20 };

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

static rocksdb_options_t *options_for(const char *style) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_error_if_exists(options, 1);
    rocksdb_options_increase_parallelism(options, 2);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, 3);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    if (!strcmp(style, "universal")) rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
    else if (strcmp(style, "level")) DIE("the style is level or universal");
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, table);
    return options;
}

int main(int argc, char **argv) {
    if (argc != 5) DIE("usage: rocksdb_load DIRECTORY ENTRIES DOCUMENTS level|universal");
    uint64_t documents = strtoull(argv[3], NULL, 10);
    int file = open(argv[2], O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) || !status.st_size || !documents) DIE("cannot read the entries");
    const uint8_t *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (bytes == MAP_FAILED) DIE("cannot map the entries");

    char *error = NULL;
    rocksdb_options_t *options = options_for(argv[4]);
    rocksdb_t *db = rocksdb_open(options, argv[1], &error);
    check(error);
    rocksdb_writeoptions_t *synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(synced, 1);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    // The entries of a batch: the same share of all of them for each document.
    uint64_t total = 0;
    for (size_t at = 0; at < (size_t)status.st_size;) {
        uint32_t lengths[2];
        memcpy(lengths, bytes + at, sizeof lengths);
        at += sizeof lengths + lengths[0] + lengths[1];
        total++;
    }
    uint64_t in_a_batch = (total * DOCUMENTS_IN_A_BATCH + documents - 1) / documents, count = 0, data = 0;
    uint64_t start = now_ns();
    for (size_t at = 0; at < (size_t)status.st_size;) {
        uint32_t lengths[2];
        memcpy(lengths, bytes + at, sizeof lengths);
        const char *key = (const char *)bytes + at + sizeof lengths;
        rocksdb_writebatch_put(batch, key, lengths[0], key + lengths[0], lengths[1]);
        at += sizeof lengths + lengths[0] + lengths[1];
        data += lengths[0] + lengths[1];
        if (++count % in_a_batch && at < (size_t)status.st_size) continue;
        rocksdb_write(db, synced, batch, &error);
        check(error);
        rocksdb_writebatch_clear(batch);
    }
    double seconds = seconds_since(start);
    char *tables = rocksdb_property_value(db, "rocksdb.total-sst-files-size");
    printf("rocksdb %s: %.0f documents/s, %.1f entries a document, %.0f bytes of keys and values a document, "
           "%.0f MB written, %.0f MB of tables\n",
           argv[4], (double)documents / seconds, (double)total / (double)documents, (double)data / (double)documents,
           (double)bytes_written() / 1e6, tables ? atof(tables) / 1e6 : 0);
    rocksdb_free(tables);
    rocksdb_close(db);
    return 0;
}
