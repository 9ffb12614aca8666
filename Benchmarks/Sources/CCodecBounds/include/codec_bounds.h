// What C reaches on the book document: the bounds that the codec benchmark divides by.
// Not thread-safe: one set of static buffers.
#ifndef HEARTH_CODEC_BOUNDS_H
#define HEARTH_CODEC_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

/// Builds the trees that the functions below use and checks that all writers agree.
/// Returns the size of the encoded document, or 0 when they differ.
size_t codec_bounds_prepare(void);

/// The encoded document: its `fields` entries in canonical order.
const uint8_t *codec_bounds_document(void);

/// Hand-written writer of this one document, from the back.
size_t codec_bounds_write(void);

/// Hand-written reader into a struct whose strings lie in the bytes. Returns 0 for bad bytes.
int codec_bounds_read(const uint8_t *bytes, size_t length);

/// protobuf-c: pack a tree that is ready.
size_t codec_bounds_pack(void);

/// protobuf-c: build the tree in an arena, and pack it.
size_t codec_bounds_build_and_pack(void);

/// protobuf-c: unpack with malloc, and free.
int codec_bounds_unpack(const uint8_t *bytes, size_t length);

/// protobuf-c: unpack into an arena.
int codec_bounds_unpack_arena(const uint8_t *bytes, size_t length);

#endif
