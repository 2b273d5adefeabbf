/* See s3_checksum_local.h. */
#include "s3_checksum_local.h"
#include "common/cleanup.h"
#include "local/http/request.h"
#include "local/http/upload.h"
#include "s3_store.h"
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <zlib.h>

static const struct algorithm {
    const char *name;
    const char *header;
    size_t bytes;
    uint64_t polynomial; /* of a CRC of our own, reflected; 0: OpenSSL's or zlib's */
} algorithms[S3_ALGORITHM_COUNT] = {
    [S3_NO_ALGORITHM] = {"", "", 0, 0},
    [S3_CRC32] = {"CRC32", "x-amz-checksum-crc32", 4, 0},
    [S3_CRC32C] = {"CRC32C", "x-amz-checksum-crc32c", 4, 0x82F63B78},
    [S3_CRC64NVME] = {"CRC64NVME", "x-amz-checksum-crc64nvme", 8, 0x9A6C9329AC4BC9B5},
    [S3_SHA1] = {"SHA1", "x-amz-checksum-sha1", 20, 0},
    [S3_SHA256] = {"SHA256", "x-amz-checksum-sha256", 32, 0},
};

enum s3_algorithm s3_algorithm_of(struct str name)
{
    for (size_t i = 1; i < S3_ALGORITHM_COUNT; i++) {
        if (name.n == strlen(algorithms[i].name) &&
            strncasecmp(name.p, algorithms[i].name, name.n) == 0) {
            return (enum s3_algorithm)i;
        }
    }
    return S3_NO_ALGORITHM;
}

const char *s3_algorithm_name(enum s3_algorithm a)
{
    return algorithms[a].name;
}

bool s3_algorithm_is_whole(enum s3_algorithm a)
{
    return a == S3_CRC64NVME;
}

struct running {
    enum s3_algorithm a;
    EVP_MD_CTX *md;
    uint64_t crc;
    uint64_t table[256];
};

static void running_begin(struct running *s, enum s3_algorithm a)
{
    *s = (struct running){.a = a};
    uint64_t polynomial = algorithms[a].polynomial;
    if (a == S3_SHA1 || a == S3_SHA256) {
        s->md = EVP_MD_CTX_new();
        ASSERT(s->md != NULL);
        int ok = EVP_DigestInit_ex(s->md, a == S3_SHA1 ? EVP_sha1() : EVP_sha256(), NULL);
        ASSERT(ok == 1);
    }
    for (unsigned i = 0; polynomial != 0 && i < ARRAY_LEN(s->table); i++) {
        uint64_t c = i;
        for (int bit = 0; bit < 8; bit++) {
            c = (c & 1) != 0 ? (c >> 1) ^ polynomial : c >> 1;
        }
        s->table[i] = c;
    }
    s->crc = polynomial == 0 ? 0 : algorithms[a].bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

static void running_add(struct running *s, const uint8_t *p, size_t n)
{
    if (s->md != NULL) {
        (void)EVP_DigestUpdate(s->md, p, n);
    } else if (s->a == S3_CRC32) {
        s->crc = crc32_z((uint32_t)s->crc, p, n);
    } else {
        for (size_t i = 0; i < n; i++) {
            s->crc = (s->crc >> 8) ^ s->table[(s->crc ^ p[i]) & 0xff];
        }
    }
}

static void running_end(struct running *s, struct s3_checksum *ret)
{
    uint8_t raw[EVP_MAX_MD_SIZE];
    size_t n = algorithms[s->a].bytes;
    if (s->md != NULL) {
        (void)EVP_DigestFinal_ex(s->md, raw, NULL);
        EVP_MD_CTX_free(s->md);
    } else {
        uint64_t crc = s->a == S3_CRC32 ? s->crc : ~s->crc;
        for (size_t i = 0; i < n; i++) {
            raw[i] = (uint8_t)(crc >> (8 * (n - 1 - i)));
        }
    }
    *ret = (struct s3_checksum){.algorithm = s->a};
    str_hex(raw, n, ret->hex);
}

bool s3_checksum_of_file(enum s3_algorithm a, int fd, struct s3_checksum *ret)
{
    struct running s;
    AUTO_FREE uint8_t *chunk = xmalloc(S3_CHUNK_BYTES);
    ssize_t n;
    running_begin(&s, a);
    for (off_t at = 0; (n = pread(fd, chunk, S3_CHUNK_BYTES, at)) > 0; at += n) {
        running_add(&s, chunk, (size_t)n);
    }
    running_end(&s, ret);
    return n == 0;
}

struct s3_checksum s3_checksum_of_parts(enum s3_algorithm a, const struct s3_checksum *parts,
                                        size_t n)
{
    struct running s;
    struct s3_checksum all;
    running_begin(&s, a);
    for (size_t i = 0; i < n; i++) {
        uint8_t raw[32];
        bool ok = str_unhex(str_of(parts[i].hex), raw, algorithms[a].bytes);
        ASSERT(ok);
        running_add(&s, raw, algorithms[a].bytes);
    }
    running_end(&s, &all);
    all.parts_n = (unsigned)n;
    return all;
}

void s3_checksum_write(const struct s3_checksum *c, struct buf *out)
{
    buf_addf(out, "%s %s %u", algorithms[c->algorithm].name, c->hex, c->parts_n);
}

void s3_checksum_read(struct str text, struct s3_checksum *ret)
{
    enum s3_algorithm a = s3_algorithm_of(str_split(&text, ' '));
    struct str hex = str_split(&text, ' ');
    uint8_t raw[32];
    int64_t n;
    *ret = (struct s3_checksum){.algorithm = S3_NO_ALGORITHM};
    if (a != S3_NO_ALGORITHM && str_unhex(hex, raw, algorithms[a].bytes) &&
        parse_i64(text, 0, INT32_MAX, &n, NULL)) {
        *ret = (struct s3_checksum){.algorithm = a, .parts_n = (unsigned)n};
        memcpy(ret->hex, hex.p, hex.n);
    }
}

void s3_checksum_text(const struct s3_checksum *c, struct buf *out)
{
    uint8_t raw[32];
    bool ok = str_unhex(str_of(c->hex), raw, algorithms[c->algorithm].bytes);
    ASSERT(ok);
    str_base64(out, raw, algorithms[c->algorithm].bytes);
    if (c->parts_n > 0) {
        buf_addf(out, "-%u", c->parts_n);
    }
}

/* The checksum of the uploaded body. Those that are not computed on arrival need the file again. */
static bool body_checksum(const struct upload *u, enum s3_algorithm a, struct s3_checksum *ret)
{
    *ret = (struct s3_checksum){.algorithm = a};
    if (a == S3_SHA256) {
        memcpy(ret->hex, u->sha256_hex, sizeof ret->hex);
        return true;
    }
    if (a == S3_CRC32) {
        (void)snprintf(ret->hex, sizeof ret->hex, "%08x", u->crc32);
        return true;
    }
    AUTO_FD int fd = open(u->tmp, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && s3_checksum_of_file(a, fd, ret);
}

/* The one checksum that the request states. False: answered. */
static bool stated(struct request *r, enum s3_algorithm *ret, struct str *ret_value)
{
    const struct upload *u = r->upload;
    size_t n = 0;
    *ret = S3_NO_ALGORITHM;
    for (size_t i = 1; i < S3_ALGORITHM_COUNT; i++) {
        struct str value = request_header(r, algorithms[i].header);
        if (value.p == NULL && strcmp(u->trailer_name, algorithms[i].header) == 0) {
            value = str_of(u->trailer_value);
        }
        if (value.p != NULL) {
            *ret = (enum s3_algorithm)i;
            *ret_value = str_trim(value);
            n++;
        }
    }
    if (n > 1) {
        reply_error(r, 400, "InvalidRequest",
                    "Expecting a single x-amz-checksum- header. Multiple checksum Types are not "
                    "allowed.");
    }
    return n <= 1;
}

/* True for base64 of n bytes. */
static bool is_base64(struct str v, size_t n)
{
    size_t pad = (3 - n % 3) % 3;
    bool ok = v.n == (n + 2) / 3 * 4;
    for (size_t i = 0; ok && i < v.n; i++) {
        char c = v.p[i];
        ok = i >= v.n - pad ? c == '='
                            : (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                                  (c >= 'a' && c <= 'z') || c == '+' || c == '/';
    }
    return ok;
}

bool s3_checksum_of_request(struct request *r, struct s3_checksum *ret)
{
    enum s3_algorithm a;
    struct str value = {"", 0};
    AUTO_BUF struct buf real = BUF_INIT(64);
    *ret = (struct s3_checksum){.algorithm = S3_NO_ALGORITHM};
    if (!stated(r, &a, &value)) {
        return false;
    }
    if (a == S3_NO_ALGORITHM) {
        return true;
    }
    if (!is_base64(value, algorithms[a].bytes)) {
        reply_error(r, 400, "InvalidRequest", "Value for %s header is invalid.",
                    algorithms[a].header);
        return false;
    }
    if (!body_checksum(r->upload, a, ret)) {
        reply_error(r, 500, "InternalError", "the body could not be read");
        return false;
    }
    s3_checksum_text(ret, &real);
    if (!str_eq(buf_str(&real), value)) {
        reply_error(r, 400, "BadDigest",
                    "The %s you specified did not match the calculated checksum.",
                    algorithms[a].name);
        return false;
    }
    return true;
}

bool s3_checksum_by_default(struct request *r, struct s3_checksum *ret)
{
    if (ret->algorithm == S3_NO_ALGORITHM && !body_checksum(r->upload, S3_CRC64NVME, ret)) {
        reply_error(r, 500, "InternalError", "the body could not be read");
        return false;
    }
    return true;
}

void s3_checksum_header(struct request *r, const struct s3_checksum *c)
{
    if (c->algorithm != S3_NO_ALGORITHM) {
        AUTO_BUF struct buf text = BUF_INIT(128);
        s3_checksum_text(c, &text);
        reply_header(r, algorithms[c->algorithm].header, buf_cstr(&text));
    }
}

void s3_checksum_headers(struct request *r, const struct s3_checksum *c)
{
    s3_checksum_header(r, c);
    if (c->algorithm != S3_NO_ALGORITHM) {
        reply_header(r, "x-amz-checksum-type", c->parts_n > 0 ? "COMPOSITE" : "FULL_OBJECT");
    }
}

void s3_checksum_xml(struct buf *out, const struct s3_checksum *c)
{
    if (c->algorithm != S3_NO_ALGORITHM) {
        buf_addf(out, "<Checksum%s>", algorithms[c->algorithm].name);
        s3_checksum_text(c, out);
        buf_addf(out, "</Checksum%s>", algorithms[c->algorithm].name);
    }
}
