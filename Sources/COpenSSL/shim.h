/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#ifndef MESHHOST_COPENSSL_SHIM_H
#define MESHHOST_COPENSSL_SHIM_H

/* OpenSSL 3's declarations, and the functions that are used of it as a table.
 *
 * Nothing is linked, so there is no `link` in the module map and no pkgConfig in Package.swift: libcrypto is loaded when
 * the table is first filled. A process that has it linked pays for its relocations at its start (1.6 MB of resident
 * memory with OpenSSL 3.0.22 on x86-64), and most hosts never need it. */
#include <dlfcn.h>
#include <stddef.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Every function of libcrypto that is called, but for TLS. Each has the type that OpenSSL's header gives it. */
#define MH_CRYPTO_FUNCTIONS(each)    \
    each(BN_bn2binpad)               \
    each(BN_clear_free)              \
    each(ERR_clear_error)            \
    each(EVP_CIPHER_CTX_free)        \
    each(EVP_CIPHER_CTX_new)         \
    each(EVP_CIPHER_CTX_set_padding) \
    each(EVP_CipherFinal_ex)         \
    each(EVP_CipherInit_ex2)         \
    each(EVP_CipherUpdate)           \
    each(EVP_Digest)                 \
    each(EVP_DigestVerify)           \
    each(EVP_DigestVerifyInit)       \
    each(EVP_MD_CTX_free)            \
    each(EVP_MD_CTX_new)             \
    each(EVP_PKEY_CTX_free)          \
    each(EVP_PKEY_CTX_new_from_name) \
    each(EVP_PKEY_CTX_new_from_pkey) \
    each(EVP_PKEY_CTX_set_params)    \
    each(EVP_PKEY_derive)            \
    each(EVP_PKEY_derive_init)       \
    each(EVP_PKEY_derive_set_peer)   \
    each(EVP_PKEY_free)              \
    each(EVP_PKEY_fromdata)          \
    each(EVP_PKEY_fromdata_init)     \
    each(EVP_PKEY_generate)          \
    each(EVP_PKEY_get_bn_param)      \
    each(EVP_PKEY_get_octet_string_param) \
    each(EVP_PKEY_keygen_init)       \
    each(EVP_PKEY_new_raw_public_key) \
    each(EVP_Q_mac)                  \
    each(EVP_aes_128_ecb)            \
    each(EVP_sha256)                 \
    each(HMAC)                       \
    each(OPENSSL_cleanse)            \
    each(OSSL_PARAM_construct_BN)    \
    each(OSSL_PARAM_construct_end)   \
    each(OSSL_PARAM_construct_octet_string) \
    each(OSSL_PARAM_construct_utf8_string) \
    each(EVP_DigestInit_ex)          \
    each(EVP_DigestUpdate)           \
    each(EVP_DigestFinal_ex)

struct mh_crypto {
#define MH_CRYPTO_MEMBER(name) __typeof__(name) *_Nonnull name;
    MH_CRYPTO_FUNCTIONS(MH_CRYPTO_MEMBER)
#undef MH_CRYPTO_MEMBER
};

/* Which parts of a key are meant; these macros are more than Swift can read. */
static const int mh_public_key = EVP_PKEY_PUBLIC_KEY;
static const int mh_key_pair = EVP_PKEY_KEYPAIR;

#define MH_TEXT_OF(value) #value
#define MH_TEXT(macro) MH_TEXT_OF(macro)

/* The libraries that fit the headers. */
#define MH_CRYPTO_LIBRARY "libcrypto.so." MH_TEXT(OPENSSL_SHLIB_VERSION)
#define MH_TLS_LIBRARY "libssl.so." MH_TEXT(OPENSSL_SHLIB_VERSION)

#define MH_FIND(name)                              \
    {                                              \
        void *address = dlsym(library, #name);     \
        if (address == NULL) return #name;         \
        table->name = (__typeof__(name) *)address; \
    }

/* Loads libcrypto and fills the table. Returns NULL, or what could not be found; the table must not be used then. */
static inline const char *_Nullable mh_crypto_load(struct mh_crypto *_Nonnull table) {
    void *library = dlopen(MH_CRYPTO_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) return MH_CRYPTO_LIBRARY;
    MH_CRYPTO_FUNCTIONS(MH_FIND)
    return NULL;
}

/* What a key on the curve P-256 is made of. OpenSSL keeps the names' addresses, so these are of here and not of Swift, whose
 * strings lend theirs for the time of one call. */
static inline OSSL_PARAM mh_curve_parameter(const struct mh_crypto *_Nonnull table) {
    return table->OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"prime256v1", 0);
}
static inline OSSL_PARAM mh_public_key_parameter(
    const struct mh_crypto *_Nonnull table, void *_Nullable point, size_t count) {
    return table->OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, count);
}
static inline OSSL_PARAM mh_private_key_parameter(
    const struct mh_crypto *_Nonnull table, unsigned char *_Nullable number, size_t count) {
    return table->OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, number, count);
}

/* Every function of libssl that is called, and those of libcrypto that only TLS needs. */
#define MH_TLS_FUNCTIONS_OF_SSL(each) \
    each(SSL_CTX_check_private_key)   \
    each(SSL_CTX_ctrl)                \
    each(SSL_CTX_free)                \
    each(SSL_CTX_get_cert_store)      \
    each(SSL_CTX_new)                 \
    each(SSL_CTX_set_default_verify_paths) \
    each(SSL_CTX_set_num_tickets)     \
    each(SSL_CTX_set_options)         \
    each(SSL_CTX_set_verify)          \
    each(SSL_CTX_use_PrivateKey)      \
    each(SSL_CTX_use_certificate)     \
    each(SSL_ctrl)                    \
    each(SSL_do_handshake)            \
    each(SSL_free)                    \
    each(SSL_get0_param)              \
    each(SSL_get1_peer_certificate)   \
    each(SSL_get_error)               \
    each(SSL_get_verify_result)       \
    each(SSL_get_version)             \
    each(SSL_new)                     \
    each(SSL_read_ex)                 \
    each(SSL_set1_host)               \
    each(SSL_set_accept_state)        \
    each(SSL_set_bio)                 \
    each(SSL_set_connect_state)       \
    each(SSL_shutdown)                \
    each(SSL_write_ex)                \
    each(TLS_method)

#define MH_TLS_FUNCTIONS_OF_CRYPTO(each) \
    each(BIO_ctrl)                       \
    each(BIO_free)                       \
    each(BIO_new)                        \
    each(BIO_new_mem_buf)                \
    each(BIO_s_mem)                      \
    each(BIO_write)                      \
    each(ERR_clear_error)                \
    each(ERR_get_error)                  \
    each(ERR_peek_last_error)            \
    each(ERR_reason_error_string)        \
    each(EVP_PKEY_free)                  \
    each(EVP_sha256)                     \
    each(PEM_read_bio_PrivateKey)        \
    each(PEM_read_bio_X509)              \
    each(X509_STORE_add_cert)            \
    each(X509_STORE_set_flags)           \
    each(X509_VERIFY_PARAM_set1_ip_asc)  \
    each(X509_digest)                    \
    each(X509_free)                      \
    each(X509_verify_cert_error_string)

struct mh_tls {
#define MH_TLS_MEMBER(name) __typeof__(name) *_Nonnull name;
    MH_TLS_FUNCTIONS_OF_SSL(MH_TLS_MEMBER)
    MH_TLS_FUNCTIONS_OF_CRYPTO(MH_TLS_MEMBER)
#undef MH_TLS_MEMBER
};

/* What every connection has; these macros are more than Swift can read. Renegotiation is the peer's way to have work done
 * and is gone in TLS 1.3. */
static const uint64_t mh_tls_options =
    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE;

/* Loads libssl, which brings libcrypto along, and fills the table. Returns NULL, or what could not be found; the table
 * must not be used then. */
static inline const char *_Nullable mh_tls_load(struct mh_tls *_Nonnull table) {
    void *library = dlopen(MH_TLS_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) return MH_TLS_LIBRARY;
    MH_TLS_FUNCTIONS_OF_SSL(MH_FIND)
    library = dlopen(MH_CRYPTO_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) return MH_CRYPTO_LIBRARY;
    MH_TLS_FUNCTIONS_OF_CRYPTO(MH_FIND)
    return NULL;
}

#endif
