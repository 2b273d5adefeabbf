/* Digests over OpenSSL and zlib. Asserts when OpenSSL lacks an algorithm: the installation is
 * broken. */
#include "common/hash.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <zlib.h>

void sha256_init(struct sha256 *h)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    ASSERT(ctx != NULL);
    int ok = EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
    ASSERT(ok == 1);
    h->ctx = ctx;
}

void sha256_add(struct sha256 *h, const void *p, size_t n)
{
    ASSERT(h->ctx != NULL);
    int ok = EVP_DigestUpdate(h->ctx, p, n);
    ASSERT(ok == 1);
}

void sha256_end(struct sha256 *h, uint8_t out[static 32])
{
    ASSERT(h->ctx != NULL);
    unsigned n = 0;
    int ok = EVP_DigestFinal_ex(h->ctx, out, &n);
    ASSERT(ok == 1 && n == 32);
    sha256_done(h);
}

void sha256_done(struct sha256 *h)
{
    EVP_MD_CTX_free(h->ctx);
    h->ctx = NULL;
}

void hash_sha256(const void *p, size_t n, uint8_t out[static 32])
{
    unsigned out_n = 0;
    int ok = EVP_Digest(p, n, out, &out_n, EVP_sha256(), NULL);
    ASSERT(ok == 1 && out_n == 32);
}

void hash_sha256_hex(const void *p, size_t n, char out[static SHA256_HEX_N])
{
    uint8_t digest[32];
    hash_sha256(p, n, digest);
    str_hex(digest, sizeof digest, out);
}

void hash_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n,
                      uint8_t out[static 32])
{
    ASSERT(key_n <= INT32_MAX);
    unsigned out_n = 0;
    /* OpenSSL reads a NULL key as "use the previous one", so an empty key needs a pointer. */
    unsigned char *digest =
        HMAC(EVP_sha256(), key_n == 0 ? "" : key, (int)key_n, p, n, out, &out_n);
    ASSERT(digest != NULL && out_n == 32);
}

uint32_t hash_crc32_on(uint32_t before, const void *p, size_t n)
{
    return (uint32_t)crc32_z(before, p, n);
}

uint32_t hash_crc32(const void *p, size_t n)
{
    return hash_crc32_on(0, p, n);
}

bool hash_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
