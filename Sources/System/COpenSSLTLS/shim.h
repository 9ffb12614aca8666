// OpenSSL's TLS, and functions in the place of the macros that Swift does not see. Apart from COpenSSL, so that a
// program without TLS does not link libssl.
#ifndef HEARTH_COPENSSLTLS_SHIM_H
#define HEARTH_COPENSSLTLS_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/// No compression, no renegotiation, the order of ciphers by the server, keys of 112 bits of security and more; buffers
/// only while they hold something; no certificates sent that were not given.
static inline void hearth_tls_harden(SSL_CTX *context) {
    SSL_CTX_set_options(
        context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                     SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_security_level(context, 2);
}

static inline int hearth_tls_require_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}

static inline int hearth_tls_set_groups(SSL_CTX *context, const char *groups) {
    return SSL_CTX_set1_groups_list(context, groups);
}

static inline int hearth_tls_add_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline void hearth_tls_limit_certificates(SSL_CTX *context, long bytes) {
    SSL_CTX_set_max_cert_list(context, bytes);
}

/// Called for each message of a session; see `hearth_tls_count_key_updates`.
static inline void hearth_tls_saw_message(
    int is_sent, int version, int kind, const void *bytes, size_t count, SSL *session, void *key_updates) {
    (void)version;
    (void)session;
    if (!is_sent && kind == SSL3_RT_HANDSHAKE && count > 0 && *(const unsigned char *)bytes == SSL3_MT_KEY_UPDATE)
        ++*(unsigned long *)key_updates;
}

/// Counts the key updates that the peer sends (RFC 8446, section 4.6.3) in a place that outlives the session.
static inline void hearth_tls_count_key_updates(SSL *session, unsigned long *key_updates) {
    SSL_set_msg_callback(session, hearth_tls_saw_message);
    SSL_set_msg_callback_arg(session, key_updates);
}

static inline int hearth_tls_set_server_name(SSL *session, const char *name) {
    return (int)SSL_set_tlsext_host_name(session, name);
}

/// Prepares the cipher and the code of a ticket; `keys` has 32 bytes for AES-256 and 32 bytes for HMAC-SHA-256.
static inline int hearth_ticket_begin(
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *code, const unsigned char *keys, const unsigned char *iv, int encrypts) {
    OSSL_PARAM params[3];
    params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(keys + 32), 32);
    params[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0);
    params[2] = OSSL_PARAM_construct_end();
    return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, keys, iv, encrypts) == 1 &&
           EVP_MAC_CTX_set_params(code, params) == 1;
}

/// The alternative names of a certificate: their number, and one of them.
static inline int hearth_names_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline GENERAL_NAME *hearth_names_at(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

/// The text of a DNS name or a URI; NULL if the name is of another type.
static inline const ASN1_STRING *hearth_name_text(const GENERAL_NAME *name) {
    if (name->type == GEN_DNS) return name->d.dNSName;
    if (name->type == GEN_URI) return name->d.uniformResourceIdentifier;
    return NULL;
}
static inline int hearth_name_is_dns(const GENERAL_NAME *name) { return name->type == GEN_DNS; }
static inline void hearth_names_free(GENERAL_NAMES *names) { GENERAL_NAMES_free(names); }

#endif
