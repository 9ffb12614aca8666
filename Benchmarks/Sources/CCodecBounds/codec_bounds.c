// The book document in C: a hand-written writer and reader, and protobuf-c with malloc and with an arena.
#include "codec_bounds.h"

#include <google/firestore/v1/firestore.pb-c.h>
#include <stdlib.h>
#include <string.h>

// ---- The document: a nested map of three URLs, an array of five tags of two strings each.

typedef struct {
    const char *bytes;
    size_t length;
} Slice;

enum { TAG_COUNT = 5 };

typedef struct {
    Slice title, author;
    int64_t pages;
    Slice cover, preview, publisher;
    struct {
        Slice label, color;
    } tags[TAG_COUNT];
    int64_t published_seconds;
    int32_t published_nanos;
} Book;

#define SLICE(text) {text, sizeof(text) - 1}

static const Book sample_book = {
    .title = SLICE("The Left Hand of Darkness"),
    .author = SLICE("Ursula K. Le Guin"),
    .pages = 304,
    .cover = SLICE("https://books.example/c/8172.png"),
    .preview = SLICE("https://books.example/p/8172"),
    .publisher = SLICE("https://ace.example/titles/8172"),
    .tags = {{SLICE("fiction"), SLICE("red")},
             {SLICE("winter"), SLICE("white")},
             {SLICE("gender"), SLICE("green")},
             {SLICE("hainish"), SLICE("indigo")},
             {SLICE("classic"), SLICE("gold")}},
    .published_seconds = -25315200,
    .published_nanos = 500000000,
};

// ---- Hand-written: written from the back, so that every length is known when it is written.

static inline uint8_t *put_varint(uint8_t *end, uint64_t value) {
    int size = 1;
    for (uint64_t rest = value >> 7; rest; rest >>= 7) size++;
    end -= size;
    for (int i = 0; i < size - 1; i++, value >>= 7) end[i] = (uint8_t)(value | 0x80);
    end[size - 1] = (uint8_t)value;
    return end;
}

static inline uint8_t *put_slice(uint8_t *end, uint8_t tag, Slice slice) {
    end -= slice.length;
    memcpy(end, slice.bytes, slice.length);
    end = put_varint(end, slice.length);
    *--end = tag;
    return end;
}

static inline uint8_t *close_message(uint8_t *end, uint8_t *start, uint8_t tag) {
    start = put_varint(start, (uint64_t)(end - start));
    *--start = tag;
    return start;
}

// Puts the key and the entry header before the value that lies in start..<end.
static inline uint8_t *close_entry(uint8_t *end, uint8_t *start, uint8_t entry_tag, const char *key, size_t key_length) {
    start = close_message(end, start, 0x12);
    start = put_slice(start, 0x0a, (Slice){key, key_length});
    return close_message(end, start, entry_tag);
}
#define KEY(text) text, sizeof(text) - 1

static inline uint8_t *put_string_entry(uint8_t *end, uint8_t entry_tag, const char *key, size_t key_length, Slice value) {
    uint8_t *at = put_slice(end, 0x01, value);  // the tag of a string is 8a 01
    *--at = 0x8a;
    return close_entry(end, at, entry_tag, key, key_length);
}

// Fields in canonical order, the last first.
static uint8_t *write_book(uint8_t *end, const Book *book) {
    uint8_t *at = end, *mark = at, *map;
    at = put_string_entry(at, 0x0a, KEY("publisher"), book->publisher);
    at = put_string_entry(at, 0x0a, KEY("preview"), book->preview);
    at = put_string_entry(at, 0x0a, KEY("cover"), book->cover);
    at = close_message(mark, at, 0x32);
    at = close_entry(mark, at, 0x12, KEY("urls"));

    at = put_string_entry(at, 0x12, KEY("title"), book->title);

    mark = at;
    for (int i = TAG_COUNT - 1; i >= 0; i--) {
        map = at;
        at = put_string_entry(at, 0x0a, KEY("label"), book->tags[i].label);
        at = put_string_entry(at, 0x0a, KEY("color"), book->tags[i].color);
        at = close_message(map, at, 0x32);
        at = close_message(map, at, 0x0a);
    }
    at = close_message(mark, at, 0x4a);
    at = close_entry(mark, at, 0x12, KEY("tags"));

    mark = at;
    at = put_varint(at, (uint32_t)book->published_nanos);
    *--at = 0x10;
    at = put_varint(at, (uint64_t)book->published_seconds);
    *--at = 0x08;
    at = close_message(mark, at, 0x52);
    at = close_entry(mark, at, 0x12, KEY("published"));

    mark = at;
    at = put_varint(at, (uint64_t)book->pages);
    *--at = 0x10;
    at = close_entry(mark, at, 0x12, KEY("pages"));
    return put_string_entry(at, 0x12, KEY("author"), book->author);
}

// ---- Hand-written reader: fields found by name, strings left where they lie.

typedef struct {
    const uint8_t *at, *end;
    int bad;
} Cursor;

static inline uint64_t get_varint(Cursor *c) {
    uint64_t value = 0;
    for (int shift = 0; c->at < c->end && shift < 64; shift += 7) {
        uint8_t byte = *c->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    c->bad = 1;
    return 0;
}

static inline Cursor get_message(Cursor *c) {
    uint64_t length = get_varint(c);
    if (length > (uint64_t)(c->end - c->at)) {
        c->bad = 1;
        length = 0;
    }
    Cursor inner = {c->at, c->at + length, c->bad};
    c->at += length;
    return inner;
}

static inline Slice get_slice(Cursor *c) {
    Cursor inner = get_message(c);
    return (Slice){(const char *)inner.at, (size_t)(inner.end - inner.at)};
}

// Reads one map entry whose tag was read: its key, and a cursor on its value message.
static inline Slice get_entry(Cursor *c, Cursor *value) {
    Cursor entry = get_message(c);
    Slice key = {NULL, 0};
    while (entry.at < entry.end && !entry.bad)
        if (*entry.at++ == 0x0a) key = get_slice(&entry);
        else *value = get_message(&entry);
    c->bad |= entry.bad;
    return key;
}

static inline int is_key(Slice key, const char *text, size_t length) {
    return key.length == length && !memcmp(key.bytes, text, length);
}

static inline Slice string_value(Cursor *value) {
    if (value->end - value->at < 2 || value->at[0] != 0x8a || value->at[1] != 0x01) {
        value->bad = 1;
        return (Slice){NULL, 0};
    }
    value->at += 2;
    return get_slice(value);
}

static int read_book(const uint8_t *bytes, size_t length, Book *book) {
    Cursor c = {bytes, bytes + length, 0};
    while (c.at < c.end && !c.bad) {
        uint8_t tag = *c.at++;
        if (tag != 0x12) return 0;
        Cursor value = {0};
        Slice key = get_entry(&c, &value);
        if (is_key(key, KEY("title"))) book->title = string_value(&value);
        else if (is_key(key, KEY("author"))) book->author = string_value(&value);
        else if (is_key(key, KEY("pages"))) value.at++, book->pages = (int64_t)get_varint(&value);
        else if (is_key(key, KEY("published"))) {
            value.at++;
            Cursor time = get_message(&value);
            while (time.at < time.end && !time.bad)
                if (*time.at++ == 0x08) book->published_seconds = (int64_t)get_varint(&time);
                else book->published_nanos = (int32_t)get_varint(&time);
        } else if (is_key(key, KEY("urls"))) {
            value.at++;
            Cursor map = get_message(&value);
            while (map.at < map.end && !map.bad) {
                map.at++;
                Cursor inner = {0};
                Slice name = get_entry(&map, &inner);
                if (is_key(name, KEY("cover"))) book->cover = string_value(&inner);
                else if (is_key(name, KEY("preview"))) book->preview = string_value(&inner);
                else if (is_key(name, KEY("publisher"))) book->publisher = string_value(&inner);
            }
        } else if (is_key(key, KEY("tags"))) {
            value.at++;
            Cursor array = get_message(&value);
            for (int i = 0; array.at < array.end && !array.bad && i < TAG_COUNT; i++) {
                array.at++;
                Cursor element = get_message(&array);
                element.at++;
                Cursor map = get_message(&element);
                while (map.at < map.end && !map.bad) {
                    map.at++;
                    Cursor inner = {0};
                    Slice name = get_entry(&map, &inner);
                    if (is_key(name, KEY("label"))) book->tags[i].label = string_value(&inner);
                    else if (is_key(name, KEY("color"))) book->tags[i].color = string_value(&inner);
                }
            }
        }
        c.bad |= value.bad;
    }
    return !c.bad;
}

// ---- protobuf-c

typedef struct {
    uint8_t *base;
    size_t used, capacity;
} Arena;

static void *arena_alloc(void *data, size_t size) {
    Arena *arena = data;
    size_t at = (arena->used + 15) & ~(size_t)15;
    if (at + size > arena->capacity) return NULL;
    arena->used = at + size;
    return arena->base + at;
}

static void arena_free(void *data, void *pointer) {
    (void)data;
    (void)pointer;
}

static void *take(ProtobufCAllocator *allocator, size_t size) { return allocator->alloc(allocator->allocator_data, size); }

static char *copy_text(ProtobufCAllocator *a, Slice slice) {
    char *text = take(a, slice.length + 1);
    memcpy(text, slice.bytes, slice.length);
    text[slice.length] = 0;
    return text;
}

static Google__Firestore__V1__Value *new_value(ProtobufCAllocator *a, Google__Firestore__V1__Value__ValueTypeCase kind) {
    Google__Firestore__V1__Value *value = take(a, sizeof *value);
    google__firestore__v1__value__init(value);
    value->value_type_case = kind;
    return value;
}

static Google__Firestore__V1__Value *new_string(ProtobufCAllocator *a, Slice text) {
    Google__Firestore__V1__Value *value = new_value(a, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_STRING_VALUE);
    value->string_value = copy_text(a, text);
    return value;
}

static Google__Firestore__V1__MapValue *new_map(ProtobufCAllocator *a, size_t count) {
    Google__Firestore__V1__MapValue *map = take(a, sizeof *map);
    google__firestore__v1__map_value__init(map);
    map->fields = take(a, count * sizeof *map->fields);
    return map;
}

static void add_to_map(ProtobufCAllocator *a, Google__Firestore__V1__MapValue *map, const char *key, Google__Firestore__V1__Value *value) {
    Google__Firestore__V1__MapValue__FieldsEntry *entry = take(a, sizeof *entry);
    google__firestore__v1__map_value__fields_entry__init(entry);
    entry->key = copy_text(a, (Slice){key, strlen(key)});
    entry->value = value;
    map->fields[map->n_fields++] = entry;
}

static void add_to_document(ProtobufCAllocator *a, Google__Firestore__V1__Document *document, const char *key, Google__Firestore__V1__Value *value) {
    Google__Firestore__V1__Document__FieldsEntry *entry = take(a, sizeof *entry);
    google__firestore__v1__document__fields_entry__init(entry);
    entry->key = copy_text(a, (Slice){key, strlen(key)});
    entry->value = value;
    document->fields[document->n_fields++] = entry;
}

static Google__Firestore__V1__Document *build(ProtobufCAllocator *a, const Book *book) {
    Google__Firestore__V1__Document *document = take(a, sizeof *document);
    google__firestore__v1__document__init(document);
    document->fields = take(a, 6 * sizeof *document->fields);
    add_to_document(a, document, "author", new_string(a, book->author));
    Google__Firestore__V1__Value *pages = new_value(a, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_INTEGER_VALUE);
    pages->integer_value = book->pages;
    add_to_document(a, document, "pages", pages);
    Google__Firestore__V1__Value *published = new_value(a, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_TIMESTAMP_VALUE);
    published->timestamp_value = take(a, sizeof *published->timestamp_value);
    google__protobuf__timestamp__init(published->timestamp_value);
    published->timestamp_value->seconds = book->published_seconds;
    published->timestamp_value->nanos = book->published_nanos;
    add_to_document(a, document, "published", published);
    Google__Firestore__V1__Value *tags = new_value(a, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_ARRAY_VALUE);
    tags->array_value = take(a, sizeof *tags->array_value);
    google__firestore__v1__array_value__init(tags->array_value);
    tags->array_value->values = take(a, TAG_COUNT * sizeof *tags->array_value->values);
    for (int i = 0; i < TAG_COUNT; i++) {
        Google__Firestore__V1__Value *tag = new_value(a, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_MAP_VALUE);
        tag->map_value = new_map(a, 2);
        add_to_map(a, tag->map_value, "color", new_string(a, book->tags[i].color));
        add_to_map(a, tag->map_value, "label", new_string(a, book->tags[i].label));
        tags->array_value->values[tags->array_value->n_values++] = tag;
    }
    add_to_document(a, document, "tags", tags);
    add_to_document(a, document, "title", new_string(a, book->title));
    Google__Firestore__V1__Value *urls = new_value(a, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_MAP_VALUE);
    urls->map_value = new_map(a, 3);
    add_to_map(a, urls->map_value, "cover", new_string(a, book->cover));
    add_to_map(a, urls->map_value, "preview", new_string(a, book->preview));
    add_to_map(a, urls->map_value, "publisher", new_string(a, book->publisher));
    add_to_document(a, document, "urls", urls);
    return document;
}

// ---- What the benchmark calls

static void *heap_alloc(void *data, size_t size) {
    (void)data;
    return malloc(size);
}

static void heap_free(void *data, void *pointer) {
    (void)data;
    free(pointer);
}

static uint8_t arena_bytes[1 << 16], packed[4096], written[4096];
static Arena arena = {arena_bytes, 0, sizeof arena_bytes};
static ProtobufCAllocator arena_allocator = {arena_alloc, arena_free, &arena};
static ProtobufCAllocator heap_allocator = {heap_alloc, heap_free, NULL};
static Google__Firestore__V1__Document *ready;

// The sample, out of the compiler's sight, so that it cannot fold it in.
static const Book *book(void) {
    const Book *book = &sample_book;
    __asm__ volatile("" : "+r"(book));
    return book;
}

size_t codec_bounds_prepare(void) {
    if (!ready) ready = build(&heap_allocator, book());
    size_t size = google__firestore__v1__document__pack(ready, packed);
    Book read = {0};
    const uint8_t *start = write_book(written + sizeof written, book());
    if ((size_t)(written + sizeof written - start) != size || memcmp(start, packed, size)) return 0;
    if (!read_book(packed, size, &read) || read.pages != book()->pages || read.tags[4].color.length != 4) return 0;
    return size;
}

const uint8_t *codec_bounds_document(void) { return packed; }

size_t codec_bounds_write(void) { return (size_t)(written + sizeof written - write_book(written + sizeof written, book())); }

int codec_bounds_read(const uint8_t *bytes, size_t length) {
    Book read;
    int good = read_book(bytes, length, &read);
    __asm__ volatile("" : : "r"(&read) : "memory");
    return good;
}

size_t codec_bounds_pack(void) { return google__firestore__v1__document__pack(ready, packed); }

size_t codec_bounds_build_and_pack(void) {
    arena.used = 0;
    return google__firestore__v1__document__pack(build(&arena_allocator, book()), packed);
}

int codec_bounds_unpack(const uint8_t *bytes, size_t length) {
    Google__Firestore__V1__Document *document = google__firestore__v1__document__unpack(NULL, length, bytes);
    if (!document) return 0;
    google__firestore__v1__document__free_unpacked(document, NULL);
    return 1;
}

int codec_bounds_unpack_arena(const uint8_t *bytes, size_t length) {
    arena.used = 0;
    return google__firestore__v1__document__unpack(&arena_allocator, length, bytes) != NULL;
}
