// Words of texts: ICU splits and folds them, Snowball reduces them to stems. Both libraries are loaded by the first use;
// the program runs without them. Their C interfaces are stable, so no headers of them are needed here.
#ifndef HEARTH_CTEXT_H
#define HEARTH_CTEXT_H

#include <stddef.h>
#include <stdint.h>

/// Loads the libraries; to be called once, before any other function.
/// Returns NULL, or what is missing.
const char *hearth_text_load(void);

/// The version of ICU, and the file that Snowball was loaded from, as paths and digits that differ when the libraries do.
const char *hearth_text_icu_version(void);
const char *hearth_text_snowball_path(void);

typedef struct hearth_text_analyzer hearth_text_analyzer;

/// A new analyzer for one thread at a time, or NULL.
/// `locale` is a language of ICU. `stemmer` is an algorithm of Snowball; NULL leaves words as they are.
hearth_text_analyzer *hearth_text_make(const char *locale, const char *stemmer);
void hearth_text_free(hearth_text_analyzer *analyzer);

/// The words of a text, which belong to the analyzer until its next use.
typedef struct {
    /// For each word its folded form and then its stem.
    const char *bytes;
    /// For each word where the folded form and where the stem ends in `bytes`.
    const uint32_t *ends;
    size_t count;
} hearth_text_words;

/// Splits a text in UTF-8. Words whose folded form has more than `word_bytes_max` bytes have no other stem.
/// Returns 0, or -1 if memory is short or the libraries fail.
int hearth_text_analyze(
    hearth_text_analyzer *analyzer, const char *text, size_t byte_count, size_t word_bytes_max,
    hearth_text_words *words);

#endif
