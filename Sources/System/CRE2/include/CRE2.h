#pragma once
// Regular expressions of RE2 behind a C interface: linear time, bounded memory, no exceptions.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled pattern. Threads may use one at the same time.
typedef struct cre2_pattern cre2_pattern;

/// Compiles a pattern, UTF-8.
///
/// `memory_max` bounds the bytes of the program and of the caches of its matches.
/// Returns NULL if the pattern is not valid or does not fit, and sets `is_too_large` if it does not fit. The caller
/// ends it with `cre2_delete`.
cre2_pattern *cre2_compile(const char *pattern, size_t count, int64_t memory_max, bool *is_too_large);

/// Frees a pattern; NULL is allowed.
void cre2_delete(cre2_pattern *pattern);

/// The number of instructions of the compiled program: a search takes at most so many steps for each byte of a text.
int cre2_program_size(const cre2_pattern *pattern);

/// The number of capturing groups, without the whole match.
int cre2_group_count(const cre2_pattern *pattern);

/// The number of the group with a name, or -1.
int cre2_group_named(const cre2_pattern *pattern, const char *name, size_t count);

/// Whether the pattern matches the whole text.
bool cre2_matches_whole(const cre2_pattern *pattern, const char *text, size_t count);

/// Finds the first match at or after `start`; the context before `start` counts for assertions.
///
/// Writes the start and the end of the whole match and of the groups that follow, 2 * `span_count` offsets; -1 for a
/// group that took no part. `span_count` is at least 1. Returns whether there is a match.
bool cre2_find(const cre2_pattern *pattern, const char *text, size_t count, size_t start, int64_t *spans, int span_count);

#ifdef __cplusplus
}
#endif
