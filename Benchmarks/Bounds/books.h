// What the made books say, for the program that makes them and the clients that ask for them.
#ifndef HEARTH_BOOKS_H
#define HEARTH_BOOKS_H

#include "common.h"

enum { TITLE_ROOM = 64 };

static const char *const words[] = {"left", "hand", "dark", "winter", "river", "glass", "stone", "light", "ember", "north", "quiet", "garden",
                                    "silver", "paper", "machine", "harbor"};

// The title of a book: one of 65,536.
static inline void write_title(char *out, uint64_t number) {
    uint64_t r = mix64(number);
    snprintf(out, TITLE_ROOM, "The %s %s of %s %s", words[r & 15], words[r >> 4 & 15], words[r >> 8 & 15], words[r >> 12 & 15]);
}

#endif
