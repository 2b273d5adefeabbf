/* S3 bodies to files: see upload.h. Chunk signatures: AWS, "Signature calculations for the
 * authorization header: transferring payload in multiple chunks". */
#include "upload.h"
#include "common/cleanup.h"
#include "common/sigv4.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#define CHUNK_BYTES_MAX (INT64_C(5) << 30)

struct upload *upload_new(const char *root, usec_t arrival, struct str kind)
{
    struct upload *u = xcalloc(1, sizeof *u);
    (void)snprintf(u->tmp, sizeof u->tmp, "%s/s3/.tmp/put-%llx-XXXXXX", root,
                   (unsigned long long)arrival);
    u->fd = mkostemp(u->tmp, O_CLOEXEC);
    if (u->fd < 0) {
        free(u);
        return NULL;
    }
    (void)fchmod(u->fd, 0644);
    sha256_init(&u->sha);
    u->md5 = EVP_MD_CTX_new();
    ASSERT(u->md5 != NULL && EVP_DigestInit_ex(u->md5, EVP_md5(), NULL) == 1);
    u->chunked = str_starts(kind, "STREAMING-");
    u->chunks_signed = str_starts(kind, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    return u;
}

void upload_free(struct upload *u)
{
    if (u == NULL) {
        return;
    }
    if (u->tmp[0] != '\0') {
        (void)unlink(u->tmp);
    }
    fd_closep(&u->fd);
    sha256_done(&u->sha);
    sha256_done(&u->chunk_sha);
    EVP_MD_CTX_free(u->md5);
    free(u);
}

static void data_add(struct upload *u, const char *p, size_t n)
{
    u->bytes += (int64_t)n;
    sha256_add(&u->sha, p, n);
    (void)EVP_DigestUpdate(u->md5, p, n);
    u->crc32 = (uint32_t)crc32_z(u->crc32, (const Bytef *)p, n);
    while (n > 0 && !u->io_failed) {
        ssize_t done = write(u->fd, p, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            u->io_failed = true;
            return;
        }
        p += done;
        n -= (size_t)done;
    }
}

/* Check `claimed` over the text of `kind`; the next chunk's signature continues from it. */
static void signature_check(struct upload *u, const char *kind, const char *hash)
{
    AUTO_BUF struct buf text = BUF_INIT(2048);
    uint8_t mac[32];
    char hex[65];
    bool chunk = strcmp(kind, "AWS4-HMAC-SHA256-PAYLOAD") == 0;
    buf_addf(&text, "%s\n%s\n%s\n%s\n%s%s", kind, u->date, u->scope, u->previous,
             chunk ? SIGV4_EMPTY_SHA256 "\n" : "", hash);
    hash_hmac_sha256(u->key, sizeof u->key, text.p, text.n, mac);
    str_hex(mac, sizeof mac, hex);
    if (!hash_equal(hex, u->claimed, 64)) {
        u->frame_failed = true;
        u->signature_failed = true;
    }
    memcpy(u->previous, hex, sizeof hex);
}

static void chunk_ended(struct upload *u)
{
    if (!u->chunks_signed) {
        return;
    }
    uint8_t digest[32];
    char hex[65];
    sha256_end(&u->chunk_sha, digest);
    str_hex(digest, sizeof digest, hex);
    signature_check(u, "AWS4-HMAC-SHA256-PAYLOAD", hex);
}

/* "<hex size>[;chunk-signature=<64 hex>]" */
static void head_line(struct upload *u, struct str line)
{
    struct str size = str_split(&line, ';');
    u->left = 0;
    u->frame_failed = u->frame_failed || size.n == 0 || size.n > 9;
    for (size_t i = 0; i < size.n && !u->frame_failed; i++) {
        const char *digits = "0123456789abcdef";
        const char *d = strchr(digits, size.p[i] | 0x20);
        u->frame_failed = d == NULL || *d == '\0';
        u->left = u->left * 16 + (d == NULL ? 0 : d - digits);
    }
    u->frame_failed = u->frame_failed || u->left > CHUNK_BYTES_MAX;
    if (u->chunks_signed) {
        const size_t skip = strlen("chunk-signature=");
        if (!str_starts(line, "chunk-signature=") || line.n != skip + 64) {
            u->frame_failed = true;
            u->signature_failed = true;
            return;
        }
        memcpy(u->claimed, line.p + skip, 64);
        sha256_done(&u->chunk_sha);
        sha256_init(&u->chunk_sha);
    }
    u->state = CHUNK_DATA;
    if (u->left == 0) {
        chunk_ended(u);
        u->state = CHUNK_TRAILER;
    }
}

static void trailer_line(struct upload *u, struct str line)
{
    if (line.n == 0) {
        u->state = CHUNK_DONE;
        return;
    }
    struct str name = str_split(&line, ':');
    if (str_eq_cstr(name, "x-amz-trailer-signature") && line.n == 64) {
        AUTO_BUF struct buf text = BUF_INIT(512);
        char hex[SHA256_HEX_N];
        buf_addf(&text, "%s:%s\n", u->trailer_name, u->trailer_value);
        hash_sha256_hex(text.p, text.n, hex);
        memcpy(u->claimed, line.p, 64);
        signature_check(u, "AWS4-HMAC-SHA256-TRAILER", hex);
    } else if (name.n < sizeof u->trailer_name && line.n < sizeof u->trailer_value) {
        (void)snprintf(u->trailer_name, sizeof u->trailer_name, STR_FMT, STR_ARG(name));
        (void)snprintf(u->trailer_value, sizeof u->trailer_value, STR_FMT, STR_ARG(line));
    } else {
        u->frame_failed = true;
    }
}

static void line_done(struct upload *u)
{
    struct str line = {u->line, u->line_n};
    if (line.n > 0 && line.p[line.n - 1] == '\r') {
        line.n--;
    }
    u->line_n = 0;
    switch (u->state) {
    case CHUNK_HEAD:
        head_line(u, line);
        break;
    case CHUNK_END:
        u->frame_failed = u->frame_failed || line.n != 0;
        u->state = CHUNK_HEAD;
        break;
    case CHUNK_TRAILER:
        trailer_line(u, line);
        break;
    case CHUNK_DATA:
    case CHUNK_DONE:
        break;
    }
}

static void frame_add(struct upload *u, const char *p, size_t n)
{
    while (n > 0 && !u->frame_failed && u->state != CHUNK_DONE) {
        if (u->state == CHUNK_DATA) {
            size_t take = MIN(n, (size_t)u->left);
            if (u->chunks_signed) {
                sha256_add(&u->chunk_sha, p, take);
            }
            data_add(u, p, take);
            p += take;
            n -= take;
            u->left -= (int64_t)take;
            if (u->left == 0) {
                chunk_ended(u);
                u->state = CHUNK_END;
            }
            continue;
        }
        char c = *p++;
        n--;
        if (c == '\n') {
            line_done(u);
        } else if (u->line_n < sizeof u->line) {
            u->line[u->line_n++] = c;
        } else {
            u->frame_failed = true;
        }
    }
}

void upload_add(struct upload *u, const char *p, size_t n)
{
    if (u->chunked) {
        frame_add(u, p, n);
    } else {
        data_add(u, p, n);
    }
}

void upload_end(struct upload *u)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    sha256_end(&u->sha, digest);
    str_hex(digest, 32, u->sha256_hex);
    (void)EVP_DigestFinal_ex(u->md5, digest, NULL);
    str_hex(digest, 16, u->md5_hex);
    if (u->chunked && u->state != CHUNK_DONE) {
        /* Some clients omit the empty line after the last chunk. */
        u->frame_failed = u->frame_failed || u->state != CHUNK_TRAILER;
    }
}
