/* Digests over OpenSSL's low-level interface: its contexts are plain memory. */
#include "sum.h"

void sum_init(struct sum *s)
{
    memset(s, 0, sizeof *s);
    (void)SHA256_Init(&s->sha256);
    (void)MD5_Init(&s->md5);
}

void sum_add(struct sum *s, const void *p, size_t n)
{
    (void)SHA256_Update(&s->sha256, p, n);
    (void)MD5_Update(&s->md5, p, n);
}

void sum_tell(const struct sum *s, char ret_sha256[static 65], char ret_md5[static 33])
{
    struct sum end = *s;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    (void)SHA256_Final(digest, &end.sha256);
    str_hex(digest, SHA256_DIGEST_LENGTH, ret_sha256);
    (void)MD5_Final(digest, &end.md5);
    str_hex(digest, MD5_DIGEST_LENGTH, ret_md5);
}

bool sum_fits(const struct sum *s, const struct s3_result *r)
{
    SHA256_CTX end = s->sha256;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    (void)SHA256_Final(digest, &end);
    return s3_sha256_fits(digest, r) && s3_sums_fit(&s->crc, r);
}

void sum_save(const struct sum *s, char ret[static SUM_SAVED_N])
{
    uint8_t bytes[sizeof *s];
    memcpy(bytes, s, sizeof bytes);
    str_hex(bytes, sizeof bytes, ret);
}

bool sum_restore(const char *text, struct sum *ret)
{
    uint8_t bytes[sizeof *ret];
    struct sum s;
    if (!str_unhex(str_of(text), bytes, sizeof bytes)) {
        return false;
    }
    memcpy(&s, bytes, sizeof s);
    /* Lengths index into the contexts: what is beyond them would be read by the next update. */
    if (s.sha256.num >= SHA256_CBLOCK || s.md5.num >= MD5_CBLOCK ||
        s.sha256.md_len != SHA256_DIGEST_LENGTH) {
        return false;
    }
    *ret = s;
    return true;
}
