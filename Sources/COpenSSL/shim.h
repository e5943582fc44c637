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
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

/* Every function of libcrypto that is called. Each has the type that OpenSSL's header gives it. */
#define MH_CRYPTO_FUNCTIONS(each)    \
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
    each(EVP_PKEY_free)              \
    each(EVP_PKEY_new_raw_public_key) \
    each(EVP_aes_128_ecb)            \
    each(EVP_sha256)                 \
    each(HMAC)

struct mh_crypto {
#define MH_CRYPTO_MEMBER(name) __typeof__(name) *_Nonnull name;
    MH_CRYPTO_FUNCTIONS(MH_CRYPTO_MEMBER)
#undef MH_CRYPTO_MEMBER
};

#define MH_TEXT_OF(value) #value
#define MH_TEXT(macro) MH_TEXT_OF(macro)

/* The library that fits the headers. */
#define MH_CRYPTO_LIBRARY "libcrypto.so." MH_TEXT(OPENSSL_SHLIB_VERSION)

/* Loads libcrypto and fills the table. Returns NULL, or what could not be found; the table must not be used then. */
static inline const char *_Nullable mh_crypto_load(struct mh_crypto *_Nonnull table) {
    void *library = dlopen(MH_CRYPTO_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) return MH_CRYPTO_LIBRARY;
#define MH_CRYPTO_FIND(name)                                   \
    {                                                          \
        void *address = dlsym(library, #name);                 \
        if (address == NULL) return #name;                     \
        table->name = (__typeof__(name) *)address;             \
    }
    MH_CRYPTO_FUNCTIONS(MH_CRYPTO_FIND)
#undef MH_CRYPTO_FIND
    return NULL;
}

#endif
