#define CURL_DISABLE_TYPECHECK
#include "CCurl.h"

#include <curl/curl.h>
#include <dlfcn.h>

// The functions of the library, with the types of its header.
static struct {
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) make;
    __typeof__(&curl_easy_cleanup) cleanup;
    CURLcode (*set)(CURL *transfer, CURLoption option, ...);
    CURLcode (*get)(CURL *transfer, CURLINFO info, ...);
    __typeof__(&curl_easy_perform) perform;
    __typeof__(&curl_easy_strerror) text;
    __typeof__(&curl_easy_header) header;
} curl;

static int find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    *(void **)function = found;
    return found != NULL;
}

const char *hearth_curl_load(void) {
    // Stays loaded: its threads and tables have no end.
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return dlerror();
    int is_complete = find(library, "curl_global_init", &curl.global_init) &&
                      find(library, "curl_easy_init", &curl.make) &&
                      find(library, "curl_easy_cleanup", &curl.cleanup) &&
                      find(library, "curl_easy_setopt", &curl.set) &&
                      find(library, "curl_easy_getinfo", &curl.get) &&
                      find(library, "curl_easy_perform", &curl.perform) &&
                      find(library, "curl_easy_strerror", &curl.text) &&
                      find(library, "curl_easy_header", &curl.header);
    if (!is_complete) return "libcurl is older than 7.84";
    return curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? NULL : "libcurl cannot be prepared";
}

void *hearth_curl_make(void) { return curl.make(); }

void hearth_curl_free(void *transfer) { curl.cleanup(transfer); }

int hearth_curl_harden(void *transfer, const char *schemes, long redirects_max) {
    CURLcode code = curl.set(transfer, CURLOPT_NOSIGNAL, 1L);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_SSL_VERIFYPEER, 1L);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_SSL_VERIFYHOST, 2L);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_PROTOCOLS_STR, schemes);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_FOLLOWLOCATION, 1L);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_MAXREDIRS, redirects_max);
    if (code == CURLE_OK) code = curl.set(transfer, CURLOPT_USERAGENT, "hearth");
    return code;
}

int hearth_curl_set_url(void *transfer, const char *url) { return curl.set(transfer, CURLOPT_URL, url); }

int hearth_curl_set_authorities(void *transfer, const char *path) { return curl.set(transfer, CURLOPT_CAINFO, path); }

int hearth_curl_ignore_proxies(void *transfer) { return curl.set(transfer, CURLOPT_NOPROXY, "*"); }

int hearth_curl_set_times(void *transfer, long connect_milliseconds, long total_milliseconds) {
    CURLcode code = curl.set(transfer, CURLOPT_CONNECTTIMEOUT_MS, connect_milliseconds);
    return code == CURLE_OK ? curl.set(transfer, CURLOPT_TIMEOUT_MS, total_milliseconds) : code;
}

int hearth_curl_set_output(void *transfer, hearth_curl_take take, void *context) {
    CURLcode code = curl.set(transfer, CURLOPT_WRITEFUNCTION, take);
    return code == CURLE_OK ? curl.set(transfer, CURLOPT_WRITEDATA, context) : code;
}

int hearth_curl_perform(void *transfer) { return curl.perform(transfer); }

const char *hearth_curl_text(int code) { return curl.text((CURLcode)code); }

long hearth_curl_status(void *transfer) {
    long status = 0;
    curl.get(transfer, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

const char *hearth_curl_field(void *transfer, const char *name, size_t index) {
    struct curl_header *field = NULL;
    return curl.header(transfer, name, index, CURLH_HEADER, -1, &field) == CURLHE_OK ? field->value : NULL;
}
