#define _GNU_SOURCE
#include "CText.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is used of ICU (unicode/ubrk.h, unorm2.h, ustring.h, uversion.h) and of libstemmer.h.
typedef uint16_t UChar;
typedef int UErrorCode;
typedef int8_t UBool;
enum { WORDS = 1, FIRST_STATUS_OF_WORDS = 100, DONE = -1, BUFFER_OVERFLOW = 15, REPLACEMENT = 0xFFFD };

static struct {
    void *(*open_breaks)(int type, const char *locale, const UChar *text, int32_t length, UErrorCode *status);
    void (*close_breaks)(void *breaks);
    void (*set_text)(void *breaks, const UChar *text, int32_t length, UErrorCode *status);
    int32_t (*first)(void *breaks);
    int32_t (*next)(void *breaks);
    int32_t (*status)(void *breaks);
    const void *(*folding)(UErrorCode *status);
    int32_t (*fold)(
        const void *folding, const UChar *source, int32_t length, UChar *to, int32_t capacity, UErrorCode *status);
    int32_t (*to_lower)(
        UChar *to, int32_t capacity, const UChar *source, int32_t length, const char *locale, UErrorCode *status);
    UChar *(*from_utf8)(
        UChar *to, int32_t capacity, int32_t *needed, const char *source, int32_t length, int32_t replacement,
        int32_t *replacements, UErrorCode *status);
    char *(*to_utf8)(
        char *to, int32_t capacity, int32_t *needed, const UChar *source, int32_t length, int32_t replacement,
        int32_t *replacements, UErrorCode *status);
    void (*version)(uint8_t version[4]);
} icu;

static struct {
    void *(*make)(const char *algorithm, const char *encoding);
    void (*free)(void *stemmer);
    const unsigned char *(*stem)(void *stemmer, const unsigned char *word, int size);
    int (*length)(void *stemmer);
} snowball;

static char icu_version[32];
static char snowball_path[4096];
static const void *folding;

// The newest and the oldest major version of ICU that is looked for. Its functions carry the version in their names.
enum { ICU_NEWEST = 99, ICU_OLDEST = 60 };

static int find(void *library, const char *name, int version, void *function) {
    char full[64];
    if (version == 0) {
        snprintf(full, sizeof full, "%s", name);
    } else {
        snprintf(full, sizeof full, "%s_%d", name, version);
    }
    void *found = dlsym(library, full);
    *(void **)function = found;
    return found != NULL;
}

static const char *load_icu(void) {
    for (int version = ICU_NEWEST; version >= ICU_OLDEST; version--) {
        char name[32];
        snprintf(name, sizeof name, "libicuuc.so.%d", version);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) continue;
        int is_complete = find(library, "ubrk_open", version, &icu.open_breaks) &&
                          find(library, "ubrk_close", version, &icu.close_breaks) &&
                          find(library, "ubrk_setText", version, &icu.set_text) &&
                          find(library, "ubrk_first", version, &icu.first) &&
                          find(library, "ubrk_next", version, &icu.next) &&
                          find(library, "ubrk_getRuleStatus", version, &icu.status) &&
                          find(library, "unorm2_getNFKCCasefoldInstance", version, &icu.folding) &&
                          find(library, "unorm2_normalize", version, &icu.fold) &&
                          find(library, "u_strToLower", version, &icu.to_lower) &&
                          find(library, "u_strFromUTF8WithSub", version, &icu.from_utf8) &&
                          find(library, "u_strToUTF8WithSub", version, &icu.to_utf8) &&
                          find(library, "u_getVersion", version, &icu.version);
        if (!is_complete) return "libicuuc lacks a function";
        UErrorCode status = 0;
        folding = icu.folding(&status);
        if (status > 0) return "libicuuc lacks its data";
        uint8_t parts[4];
        icu.version(parts);
        snprintf(icu_version, sizeof icu_version, "%d.%d.%d.%d", parts[0], parts[1], parts[2], parts[3]);
        return NULL;
    }
    return "libicuuc (ICU, Debian's libicu72)";
}

static const char *load_snowball(void) {
    void *library = dlopen("libstemmer.so.0d", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) library = dlopen("libstemmer.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return "libstemmer (Snowball, Debian's libstemmer0d)";
    int is_complete = find(library, "sb_stemmer_new", 0, &snowball.make) &&
                      find(library, "sb_stemmer_delete", 0, &snowball.free) &&
                      find(library, "sb_stemmer_stem", 0, &snowball.stem) &&
                      find(library, "sb_stemmer_length", 0, &snowball.length);
    if (!is_complete) return "libstemmer lacks a function";
    Dl_info info;
    if (dladdr((void *)snowball.make, &info) != 0 && info.dli_fname != NULL) {
        snprintf(snowball_path, sizeof snowball_path, "%s", info.dli_fname);
    }
    return NULL;
}

const char *hearth_text_load(void) {
    // Both stay loaded.
    const char *missing = load_icu();
    return missing == NULL ? load_snowball() : missing;
}

const char *hearth_text_icu_version(void) { return icu_version; }

const char *hearth_text_snowball_path(void) { return snowball_path; }

struct hearth_text_analyzer {
    void *breaks;
    void *stemmer;
    /// Not empty if the lower case of the language is not that of the others.
    char locale[4];
    /// Articles and the like are written in one word with what follows, with an apostrophe between: l'eau.
    int elides;
    UChar *text;
    size_t text_capacity;
    UChar *lower;
    size_t lower_capacity;
    UChar *folded;
    size_t folded_capacity;
    char *bytes;
    size_t bytes_capacity;
    uint32_t *ends;
    size_t ends_capacity;
};

hearth_text_analyzer *hearth_text_make(const char *locale, const char *stemmer) {
    hearth_text_analyzer *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    UErrorCode status = 0;
    made->breaks = icu.open_breaks(WORDS, locale, NULL, 0, &status);
    if (stemmer != NULL) made->stemmer = snowball.make(stemmer, "UTF_8");
    if (strcmp(locale, "tr") == 0) strcpy(made->locale, "tr");
    made->elides = strcmp(locale, "fr") == 0 || strcmp(locale, "it") == 0 || strcmp(locale, "ca") == 0;
    if (status > 0 || made->breaks == NULL || (stemmer != NULL && made->stemmer == NULL)) {
        hearth_text_free(made);
        return NULL;
    }
    return made;
}

void hearth_text_free(hearth_text_analyzer *analyzer) {
    if (analyzer->breaks != NULL) icu.close_breaks(analyzer->breaks);
    if (analyzer->stemmer != NULL) snowball.free(analyzer->stemmer);
    free(analyzer->text);
    free(analyzer->lower);
    free(analyzer->folded);
    free(analyzer->bytes);
    free(analyzer->ends);
    free(analyzer);
}

/// Makes room for `needed` elements.
static int reserve(void *buffer, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity) return 1;
    size_t wanted = needed + needed / 2 + 64;
    void *grown = realloc(*(void **)buffer, wanted * size);
    if (grown == NULL) return 0;
    *(void **)buffer = grown;
    *capacity = wanted;
    return 1;
}

/// Folds a word of `text` into `folded`; returns its length, or -1.
static int32_t fold(hearth_text_analyzer *analyzer, const UChar *word, int32_t length) {
    UErrorCode status = 0;
    if (analyzer->locale[0] != 0) {
        // A letter has at most three lower-case ones.
        if (!reserve(&analyzer->lower, &analyzer->lower_capacity, 3 * (size_t)length, sizeof(UChar))) return -1;
        length = icu.to_lower(
            analyzer->lower, (int32_t)analyzer->lower_capacity, word, length, analyzer->locale, &status);
        if (status > 0) return -1;
        word = analyzer->lower;
    }
    if (!reserve(&analyzer->folded, &analyzer->folded_capacity, (size_t)length, sizeof(UChar))) return -1;
    int32_t needed =
        icu.fold(folding, word, length, analyzer->folded, (int32_t)analyzer->folded_capacity, &status);
    if (status == BUFFER_OVERFLOW) {
        status = 0;
        if (!reserve(&analyzer->folded, &analyzer->folded_capacity, (size_t)needed, sizeof(UChar))) return -1;
        needed = icu.fold(folding, word, length, analyzer->folded, (int32_t)analyzer->folded_capacity, &status);
    }
    if (status > 0) return -1;
    int32_t start = 0;
    for (int32_t place = 0; place < needed; place++) {
        if (analyzer->folded[place] == 0x2019) analyzer->folded[place] = '\'';
        if (analyzer->elides && analyzer->folded[place] == '\'' && place + 1 < needed) start = place + 1;
    }
    memmove(analyzer->folded, analyzer->folded + start, (size_t)(needed - start) * sizeof(UChar));
    return needed - start;
}

int hearth_text_analyze(
    hearth_text_analyzer *analyzer, const char *text, size_t byte_count, size_t word_bytes_max,
    hearth_text_words *words) {
    UErrorCode status = 0;
    int32_t length = 0;
    size_t used = 0;
    words->count = 0;
    if (byte_count > INT32_MAX / 4) return -1;
    // A byte is at most one unit of UTF-16.
    if (!reserve(&analyzer->text, &analyzer->text_capacity, byte_count + 1, sizeof(UChar))) return -1;
    icu.from_utf8(
        analyzer->text, (int32_t)analyzer->text_capacity, &length, text, (int32_t)byte_count, REPLACEMENT, NULL,
        &status);
    icu.set_text(analyzer->breaks, analyzer->text, length, &status);
    if (status > 0) return -1;
    int32_t start = icu.first(analyzer->breaks);
    for (int32_t end = icu.next(analyzer->breaks); end != DONE; start = end, end = icu.next(analyzer->breaks)) {
        if (icu.status(analyzer->breaks) < FIRST_STATUS_OF_WORDS) continue;
        int32_t folded = fold(analyzer, analyzer->text + start, end - start);
        if (folded < 0) return -1;
        if (folded == 0) continue;
        // A unit of UTF-16 takes at most three bytes. The stem is seldom longer than the word, by a few bytes at most.
        if (!reserve(&analyzer->bytes, &analyzer->bytes_capacity, used + 3 * (size_t)folded, 1)) return -1;
        int32_t count = 0;
        icu.to_utf8(
            analyzer->bytes + used, (int32_t)(analyzer->bytes_capacity - used), &count, analyzer->folded, folded,
            REPLACEMENT, NULL, &status);
        if (status > 0) return -1;
        const char *stem = analyzer->bytes + used;
        size_t stem_count = (size_t)count;
        if (analyzer->stemmer != NULL && stem_count <= word_bytes_max) {
            stem = (const char *)snowball.stem(analyzer->stemmer, (const unsigned char *)stem, count);
            if (stem == NULL) return -1;
            stem_count = (size_t)snowball.length(analyzer->stemmer);
        }
        size_t stem_start = used + (size_t)count;
        // The word itself may move; what Snowball returns is its own.
        int is_own = stem == analyzer->bytes + used;
        if (!reserve(&analyzer->bytes, &analyzer->bytes_capacity, stem_start + stem_count, 1)) return -1;
        memmove(analyzer->bytes + stem_start, is_own ? analyzer->bytes + used : stem, stem_count);
        if (!reserve(&analyzer->ends, &analyzer->ends_capacity, 2 * (words->count + 1), sizeof(uint32_t))) return -1;
        analyzer->ends[2 * words->count] = (uint32_t)stem_start;
        analyzer->ends[2 * words->count + 1] = (uint32_t)(stem_start + stem_count);
        words->count++;
        used = stem_start + stem_count;
    }
    words->bytes = analyzer->bytes;
    words->ends = analyzer->ends;
    return 0;
}
