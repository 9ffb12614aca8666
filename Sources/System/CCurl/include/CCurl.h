// The part of libcurl that fetches small files. The library is loaded by the first use: it needs some thirty others, and
// a program that links it starts 40 ms later.
#ifndef HEARTH_CCURL_H
#define HEARTH_CCURL_H

#include <stddef.h>

/// Loads the library; to be called once, before any other function.
/// Returns NULL, or why that is not possible.
const char *hearth_curl_load(void);

/// A new transfer, or NULL; for one thread at a time.
void *hearth_curl_make(void);
void hearth_curl_free(void *transfer);

// Results of the following functions: 0, or a code for hearth_curl_text.

/// Verified TLS 1.2 or newer, redirects to https alone, no signals, no credentials of files.
int hearth_curl_harden(void *transfer, const char *schemes, long redirects_max);
int hearth_curl_set_url(void *transfer, const char *url);
/// A file of authorities, PEM, instead of those of the system.
int hearth_curl_set_authorities(void *transfer, const char *path);
/// No proxy, whatever the environment says.
int hearth_curl_ignore_proxies(void *transfer);
int hearth_curl_set_times(void *transfer, long connect_milliseconds, long total_milliseconds);

/// Takes the bytes of a body; another result than `size * count` ends the transfer.
typedef size_t (*hearth_curl_take)(char *bytes, size_t size, size_t count, void *context);
int hearth_curl_set_output(void *transfer, hearth_curl_take take, void *context);

/// Performs the transfer and waits for its end.
int hearth_curl_perform(void *transfer);

/// What a code means.
const char *hearth_curl_text(int code);
/// The status of the last response; 0 if there was none.
long hearth_curl_status(void *transfer);
/// The value of a header field of the last response by its place among those of the name; NULL if there are fewer.
const char *hearth_curl_field(void *transfer, const char *name, size_t index);

#endif
