// Makes deterministic JSON-lines documents: books of about 450 bytes with a map of three URLs and five tags, or records of eight
// fields with a value each, for indexes.
// usage: gen_docs COUNT [csv] [records]    csv: "id<TAB>json" lines, as COPY reads them
#include "books.h"

static const char *const labels[] = {"fiction", "history", "gender", "hainish", "classic", "travel", "science", "poetry"};
static const char *const colors[] = {"red", "white", "green", "indigo", "gold", "black", "teal", "orange"};

int main(int argc, char **argv) {
    if (argc < 2) DIE("usage: gen_docs COUNT [csv]");
    uint64_t count = strtoull(argv[1], NULL, 10);
    int csv = argc > 2 && !strcmp(argv[2], "csv");
    int records = argc > 2 && !strcmp(argv[argc - 1], "records");
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (uint64_t i = 0; i < count; i++) {
        char id[ID_LENGTH + 1] = {0};
        uint64_t r = mix64(i), s = mix64(r);
        write_random_id(id, i);
        if (csv) printf("%s\t{", id);
        else printf("{\"id\":\"%s\",", id);
        if (records) {
            printf("\"number\":%llu,\"random\":%llu,\"group\":%llu,\"author\":\"%s %s\",\"title\":\"title %u\",\"price\":%u.%02u,\"flag\":%s,"
                   "\"published\":\"%04u-%02u-%02u\"}\n", (unsigned long long)i, (unsigned long long)(s >> 12), (unsigned long long)(i % (count / 20 + 1)),
                   words[r >> 16 & 15], words[r >> 20 & 15], (unsigned)(r % 100000), (unsigned)(s % 100), (unsigned)(r % 100),
                   i & 1 ? "true" : "false", 1950 + (unsigned)(r % 70), 1 + (unsigned)(s % 12), 1 + (unsigned)(s / 12 % 28));
            continue;
        }
        char title[TITLE_ROOM];
        write_title(title, i);
        printf("\"title\":\"%s\",\"author\":\"%s %s\",\"pages\":%u,", title, words[r >> 16 & 15], words[r >> 20 & 15],
               (unsigned)(r >> 24 & 1023));
        printf("\"urls\":{\"cover\":\"https://books.example/c/%u.png\",\"preview\":\"https://books.example/p/%u\",\"publisher\":\"https://ace.example/titles/%u\"},",
               (unsigned)(s & 0xffff), (unsigned)(s >> 16 & 0xffff), (unsigned)(s >> 32 & 0xffff));
        printf("\"tags\":[");
        for (int t = 0; t < 5; t++)
            printf("%s{\"label\":\"%s\",\"color\":\"%s\"}", t ? "," : "", labels[r >> (32 + 3 * t) & 7], colors[s >> (40 + 3 * t) & 7]);
        printf("],\"published\":\"%04u-%02u-%02uT%02u:00:00Z\"}\n", 1950 + (unsigned)(r % 70), 1 + (unsigned)(s % 12), 1 + (unsigned)(s / 12 % 28),
               (unsigned)(s / 400 % 24));
    }
    return 0;
}
