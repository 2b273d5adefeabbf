/* SHA-256, HMAC-SHA-256 and CRC-32, over OpenSSL and zlib; CRC-64/NVME. */
#pragma once
#include "str.h"

#define SHA256_HEX_N 65 /* 64 digits and NUL */
struct sha256 {         /* a running digest */
    void *ctx;
};
void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *p, size_t n);
void sha256_end(struct sha256 *h, uint8_t out[static 32]); /* frees the context */
/* cleanup when sha256_end was not called */
void sha256_done(struct sha256 *h);
void hash_sha256(const void *p, size_t n, uint8_t out[static 32]);
void hash_sha256_hex(const void *p, size_t n, char out[static SHA256_HEX_N]);
void hash_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n,
                      uint8_t out[static 32]);
uint32_t hash_crc32(const void *p, size_t n);
/* CRC-64/NVME and CRC-32 of what follows bytes that have the value `before` (0: nothing does). */
uint64_t hash_crc64nvme(uint64_t before, const void *p, size_t n);
uint32_t hash_crc32_on(uint32_t before, const void *p, size_t n);
bool hash_equal(const void *a, const void *b, size_t n); /* constant time */
