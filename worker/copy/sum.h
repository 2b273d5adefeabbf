/* SHA-256, MD5 and CRCs of a file as it passes, in a form that can be saved and continued by
 * another process of this program. */
#pragma once
#define OPENSSL_SUPPRESS_DEPRECATED /* the digests of OpenSSL 3 cannot be saved half-way */
#include "common/s3.h"
#include <openssl/md5.h>
#include <openssl/sha.h>

struct sum { /* a value without pointers */
    SHA256_CTX sha256;
    MD5_CTX md5;
    struct s3_sums crc; /* of a source in S3 alone: its reader adds to it */
};
#define SUM_SAVED_N (2 * sizeof(struct sum) + 1) /* hex digits and NUL */

void sum_init(struct sum *s);
void sum_add(struct sum *s, const void *p, size_t n);
/* The digests in hex. s can go on. */
void sum_tell(const struct sum *s, char ret_sha256[static 65], char ret_md5[static 33]);
/* False: an answer of S3 about the whole object tells another checksum. */
bool sum_fits(const struct sum *s, const struct s3_result *r);
/* As text, and from it; false: not such a text. */
void sum_save(const struct sum *s, char ret[static SUM_SAVED_N]);
bool sum_restore(const char *text, struct sum *ret) MUST_CHECK;
