/* Checksums of what is read from S3, compared with those that it tells. Only those of the whole
 * object are: one over the checksums of parts ("...-3") needs to know where these end. */
#include "common/cleanup.h"
#include "s3_internal.h"

static void text_of(uint64_t value, size_t bytes, char *out, size_t out_n)
{
    uint8_t raw[8];
    AUTO_BUF struct buf text = BUF_INIT(S3_CHECKSUM_N);
    for (size_t i = 0; i < bytes; i++) {
        raw[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
    }
    str_base64(&text, raw, bytes);
    ASSERT(text.n < out_n);
    (void)snprintf(out, out_n, "%s", buf_cstr(&text));
}

void s3_crc64_text(uint64_t crc, char out[static S3_CRC64_N])
{
    text_of(crc, 8, out, S3_CRC64_N);
}

void s3_sums_add(struct s3_sums *s, struct str data)
{
    s->crc64nvme = hash_crc64nvme(s->crc64nvme, data.p, data.n);
    s->crc32 = hash_crc32_on(s->crc32, data.p, data.n);
}

static bool crc64_fits(uint64_t crc, const char *told)
{
    char ours[S3_CRC64_N];
    s3_crc64_text(crc, ours);
    return told[0] == '\0' || strcmp(told, ours) == 0;
}

static bool crc32_fits(uint32_t crc, const char *told)
{
    char ours[S3_CRC32_N];
    text_of(crc, 4, ours, sizeof ours);
    return told[0] == '\0' || strcmp(told, ours) == 0;
}

bool s3_sums_fit(const struct s3_sums *s, const struct s3_result *r)
{
    return r->of_parts ||
           (crc64_fits(s->crc64nvme, r->crc64nvme) && crc32_fits(s->crc32, r->crc32));
}

bool s3_sha256_fits(const uint8_t sha256[static 32], const struct s3_result *r)
{
    AUTO_BUF struct buf ours = BUF_INIT(S3_CHECKSUM_N);
    str_base64(&ours, sha256, 32);
    return r->of_parts || r->checksum[0] == '\0' || strcmp(r->checksum, buf_cstr(&ours)) == 0;
}

bool s3_body_fits(struct str body, const struct s3_result *r)
{
    struct s3_sums sums = {0};
    uint8_t sha256[32];
    if (r->of_parts) {
        return true;
    }
    if (r->crc64nvme[0] != '\0' || r->crc32[0] != '\0') {
        s3_sums_add(&sums, body);
        return s3_sums_fit(&sums, r);
    }
    if (r->checksum[0] != '\0') {
        hash_sha256(body.n > 0 ? body.p : "", body.n, sha256);
        return s3_sha256_fits(sha256, r);
    }
    return true;
}
