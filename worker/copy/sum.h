/* SHA-256 and MD5 of a file as it passes, in a form that can be saved and continued by another
 * process of this program. */
#pragma once
#define OPENSSL_SUPPRESS_DEPRECATED /* the digests of OpenSSL 3 cannot be saved half-way */
#include "common/base.h"
#include <openssl/md5.h>
#include <openssl/sha.h>

struct sum { /* a value without pointers */
    SHA256_CTX sha256;
    MD5_CTX md5;
};
#define SUM_SAVED_N (2 * sizeof(struct sum) + 1) /* hex digits and NUL */

void sum_init(struct sum *s);
void sum_add(struct sum *s, const void *p, size_t n);
/* The digests in hex. s can go on. */
void sum_tell(const struct sum *s, char ret_sha256[static 65], char ret_md5[static 33]);
/* As text, and from it; false: not such a text. */
void sum_save(const struct sum *s, char ret[static SUM_SAVED_N]);
bool sum_restore(const char *text, struct sum *ret) MUST_CHECK;
