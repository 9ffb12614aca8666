// OpenSSL's libcrypto, and the building of public keys from their numbers, which takes macros.
#ifndef HEARTH_COPENSSL_SHIM_H
#define HEARTH_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

/// A public key of a type and its parameters; NULL if they are not one.
static inline EVP_PKEY *hearth_public_key(const char *type, OSSL_PARAM *params) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;
    if (context == NULL || params == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

/// An RSA key of modulus and exponent, big-endian.
static inline EVP_PKEY *hearth_rsa_public_key(
    const unsigned char *modulus, int modulus_count, const unsigned char *exponent, int exponent_count) {
    BIGNUM *n = BN_bin2bn(modulus, modulus_count, NULL), *e = BN_bin2bn(exponent, exponent_count, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    if (n != NULL && e != NULL && builder != NULL && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY *key = hearth_public_key("RSA", params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return key;
}

/// An elliptic-curve key of a group, such as P-256, and an uncompressed point of it.
static inline EVP_PKEY *hearth_ec_public_key(const char *group, const unsigned char *point, size_t count) {
    OSSL_PARAM params[3];
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)group, 0);
    params[1] = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, count);
    params[2] = OSSL_PARAM_construct_end();
    EVP_PKEY *key = hearth_public_key("EC", params);
    EVP_PKEY_CTX *context = key == NULL ? NULL : EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    if (context == NULL || EVP_PKEY_public_check(context) != 1) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    return key;
}

/// A signature of ECDSA in DER, of its two numbers of `half` bytes each (RFC 7518, section 3.4); its length, or 0.
static inline int hearth_ecdsa_to_der(const unsigned char *raw, int half, unsigned char *der, int der_max) {
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, half, NULL), *s = BN_bin2bn(raw + half, half, NULL);
    int count = 0;
    if (signature != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(signature, r, s) == 1) {
        r = s = NULL;
        count = i2d_ECDSA_SIG(signature, NULL);
        if (count > 0 && count <= der_max) count = i2d_ECDSA_SIG(signature, &der);
        else count = 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(signature);
    return count;
}

/// The two numbers of a signature in DER, `half` bytes each; 1 or 0.
static inline int hearth_ecdsa_from_der(const unsigned char *der, long count, unsigned char *raw, int half) {
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, count);
    int done = signature != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, half) == half &&
               BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + half, half) == half;
    ECDSA_SIG_free(signature);
    return done;
}

#endif
