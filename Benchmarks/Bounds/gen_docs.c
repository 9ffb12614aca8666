// Makes deterministic JSON-lines documents: books of about 450 bytes with a map of three URLs and five tags, or records of eight
// fields with a value each, for indexes, or texts of twenty words with one of 1,000 groups, for pipelines.
// usage: gen_docs COUNT [csv] [records | texts]    csv: "id<TAB>json" lines, as COPY reads them
//        gen_docs COUNT queries    200 lines of two words that one of COUNT texts has
#include "books.h"
#include <math.h>

static const char *const labels[] = {"fiction", "history", "gender", "hainish", "classic", "travel", "science", "poetry"};
static const char *const colors[] = {"red", "white", "green", "indigo", "gold", "black", "teal", "orange"};

enum { TEXT_WORDS = 20, VOCABULARY = 50000, FREQUENT = 20, QUERIES = 200 };

// The word of a rank: six letters, another for each rank.
static void write_word(char *out, unsigned rank) {
    unsigned number = (unsigned)((uint64_t)rank * 7919 % 512000); // 80 to the power of 3
    for (int i = 0; i < 3; i++, number /= 80) {
        *out++ = "bcdfghjklmnprstv"[number % 80 / 5];
        *out++ = "aeiou"[number % 5];
    }
    *out = 0;
}

// The rank of a word of a text, from 1: the n-th is as frequent as 1 / n.
static unsigned text_rank(uint64_t text, int place) {
    uint64_t r = mix64(mix64(text) + (uint64_t)place);
    return (unsigned)exp((double)(r >> 11) * 0x1p-53 * log(VOCABULARY));
}

// Two different words of one text, without the most frequent ones.
static void print_queries(uint64_t count) {
    for (uint64_t query = 0, text = 0; query < QUERIES; text++) {
        uint64_t number = mix64(text) % count;
        unsigned found[2], have = 0;
        for (int place = 0; place < TEXT_WORDS && have < 2; place++) {
            unsigned rank = text_rank(number, place);
            if (rank >= FREQUENT && (have == 0 || rank != found[0])) found[have++] = rank;
        }
        if (have < 2) continue;
        char first[8], second[8];
        write_word(first, found[0]);
        write_word(second, found[1]);
        printf("%s %s\n", first, second);
        query++;
    }
}

int main(int argc, char **argv) {
    if (argc < 2) DIE("usage: gen_docs COUNT [csv] [records | texts] | COUNT queries");
    uint64_t count = strtoull(argv[1], NULL, 10);
    int csv = argc > 2 && !strcmp(argv[2], "csv");
    int records = argc > 2 && !strcmp(argv[argc - 1], "records");
    int texts = argc > 2 && !strcmp(argv[argc - 1], "texts");
    if (argc > 2 && !strcmp(argv[2], "queries")) {
        print_queries(count);
        return 0;
    }
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
        if (texts) {
            printf("\"group\":\"group %u\",\"number\":%u,\"price\":%u.%02u,\"text\":\"", (unsigned)(r % 1000), (unsigned)(s % 100000),
                   (unsigned)(s >> 20 & 255), (unsigned)(s >> 30 & 63));
            for (int place = 0; place < TEXT_WORDS; place++) {
                char word[8];
                write_word(word, text_rank(i, place));
                printf("%s%s", place ? " " : "", word);
            }
            printf("\"}\n");
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
