// Protobuf messages written from the back, so that every length is known when its turn comes.
#ifndef HEARTH_WIRE_H
#define HEARTH_WIRE_H

#include "common.h"

typedef struct {
    uint8_t bytes[4096];
    size_t at;
} Back;

static inline void put(Back *b, const void *bytes, size_t count) { memcpy(b->bytes + (b->at -= count), bytes, count); }
static inline void put_byte(Back *b, unsigned byte) { b->bytes[--b->at] = (uint8_t)byte; }
static inline void put_varint(Back *b, uint64_t value) {
    uint8_t bytes[10];
    size_t count = 0;
    do bytes[count++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    while (value >>= 7);
    put(b, bytes, count);
}
// Everything from `at` to `end` becomes the payload of a length-delimited field.
static inline void wrap(Back *b, unsigned tag, size_t end) {
    put_varint(b, end - b->at);
    put_varint(b, tag);
}
static inline void put_string(Back *b, unsigned tag, const char *text) {
    size_t end = b->at;
    put(b, text, strlen(text));
    wrap(b, tag, end);
}
// A map entry whose value's bytes stand from `at` to `end`.
static inline void put_entry(Back *b, unsigned tag, const char *key, size_t end) {
    wrap(b, 0x12, end);
    put_string(b, 0x0a, key);
    wrap(b, tag, end);
}
static inline void put_text(Back *b, unsigned tag, const char *key, const char *text) {
    size_t end = b->at;
    put_string(b, 17 << 3 | 2, text);
    put_entry(b, tag, key, end);
}

// A varint at *at, which moves past it; ends the program on a truncated one.
static inline uint64_t take_varint(const uint8_t **at, const uint8_t *end) {
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    DIE("a malformed varint");
}

#endif
