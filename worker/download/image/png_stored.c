/* Everything before the image data, one IDAT chunk of stored blocks, IEND. Checksums are left out:
 * the reader ignores them. Rows are inflated behind the place they go to, and moved as the blocks'
 * heads are written. */
#include "png_stored.h"
#include <libdeflate.h>

#define SIGNATURE_N 8
#define CHUNK_N     12 /* length, type, checksum */
#define ZLIB_N      2  /* in front of deflate's data */
#define BLOCK_N     5  /* a stored block's head */
#define BLOCK_MAX   65535

struct data_span { /* of the image data's chunks in the body; n: bytes of data in them */
    size_t from, to, n;
};

static size_t be32(const char *p)
{
    const uint8_t *u = (const uint8_t *)p;
    return (size_t)u[0] << 24 | (size_t)u[1] << 16 | (size_t)u[2] << 8 | u[3];
}

/* Chunks of image data follow each other; another one must come after them. */
static bool find_data(struct str body, struct data_span *ret)
{
    struct data_span s = {0};
    for (size_t at = SIGNATURE_N; at + CHUNK_N <= body.n;) {
        size_t n = be32(body.p + at);
        bool data = memcmp(body.p + at + 4, "IDAT", 4) == 0;
        if (n > body.n - at - CHUNK_N || (data && n == 0)) {
            return false;
        }
        if (!data && s.from != 0) {
            s.to = at;
            *ret = s;
            return true;
        }
        s.from = data && s.from == 0 ? at : s.from;
        s.n += data ? n : 0;
        at += CHUNK_N + n;
    }
    return false;
}

/* The data of all chunks in one piece; *ret_copy is freed by the caller. */
static const uint8_t *data_of(struct str body, const struct data_span *s, uint8_t **ret_copy)
{
    *ret_copy = NULL;
    if (s->to - s->from == CHUNK_N + s->n) {
        return (const uint8_t *)body.p + s->from + 8;
    }
    ASSERT(s->from < s->to); /* there is a chunk to copy */
    uint8_t *to = *ret_copy = malloc(s->n);
    for (size_t at = s->from; to != NULL && at < s->to;) {
        size_t n = be32(body.p + at);
        memcpy(to, body.p + at + 8, n);
        to += n;
        at += CHUNK_N + n;
    }
    return *ret_copy;
}

/* Exactly raw_n bytes, of a stream that zlib would begin to read. */
static bool inflate_all(const uint8_t *in, size_t n, uint8_t *out, size_t raw_n)
{
    bool zlib =
        n > ZLIB_N && (in[0] & 0x8f) == 8 && (in[1] & 0x20) == 0 && (in[0] << 8 | in[1]) % 31 == 0;
    struct libdeflate_decompressor *d = zlib ? libdeflate_alloc_decompressor() : NULL;
    bool ok = d != NULL && libdeflate_deflate_decompress(d, in + ZLIB_N, n - ZLIB_N, out, raw_n,
                                                         NULL) == LIBDEFLATE_SUCCESS;
    libdeflate_free_decompressor(d);
    return ok;
}

static uint8_t *put_be32(uint8_t *p, size_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (24 - 8 * i));
    }
    return p + 4;
}

/* out may lie up to BLOCK_N a block before raw. */
static uint8_t *put_blocks(uint8_t *out, const uint8_t *raw, size_t raw_n)
{
    for (size_t at = 0; at < raw_n; at += BLOCK_MAX) {
        size_t n = MIN(raw_n - at, (size_t)BLOCK_MAX);
        const uint8_t head[BLOCK_N] = {at + n == raw_n, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n,
                                       (uint8_t)(~n >> 8)};
        memcpy(out, head, sizeof head);
        memmove(out + BLOCK_N, raw + at, n);
        out += BLOCK_N + n;
    }
    return out;
}

/* raw_n bytes into memory of head_n bytes more in front of them and tail_n behind. */
static uint8_t *inflated(struct str body, const struct data_span *s, size_t head_n, size_t raw_n,
                         size_t tail_n)
{
    uint8_t *copy;
    uint8_t *all = malloc(head_n + raw_n + tail_n);
    const uint8_t *data = data_of(body, s, &copy);
    bool ok = all != NULL && data != NULL && inflate_all(data, s->n, all + head_n, raw_n);
    free(copy);
    if (!ok) {
        free(all);
        return NULL;
    }
    return all;
}

static bool may(struct str body, size_t raw_n, struct data_span *ret)
{
    return raw_n > 0 && raw_n <= PNG_STORED_RAW_MAX && find_data(body, ret);
}

bool png_raw(struct str body, size_t raw_n, uint8_t **ret)
{
    struct data_span s;
    uint8_t *all = may(body, raw_n, &s) ? inflated(body, &s, 0, raw_n, 1) : NULL;
    if (all == NULL) {
        return false;
    }
    all[raw_n] = 0;
    *ret = all;
    return true;
}

bool png_stored(struct str body, size_t raw_n, uint8_t **ret, size_t *ret_n)
{
    struct data_span s;
    if (!may(body, raw_n, &s)) {
        return false;
    }
    size_t heads_n = (raw_n + BLOCK_MAX - 1) / BLOCK_MAX * BLOCK_N;
    size_t raw_at = s.from + 8 + ZLIB_N + heads_n;
    uint8_t *all = inflated(body, &s, raw_at, raw_n, 4 + CHUNK_N);
    if (all == NULL) {
        return false;
    }
    memcpy(all, body.p, s.from);
    uint8_t *p = put_be32(all + s.from, ZLIB_N + heads_n + raw_n);
    memcpy(p, "IDAT\x78\x01", 4 + ZLIB_N);
    p = put_blocks(p + 4 + ZLIB_N, all + raw_at, raw_n);
    memcpy(p, "\0\0\0\0\0\0\0\0IEND\0\0\0\0", 4 + CHUNK_N);
    *ret = all;
    *ret_n = (size_t)(p - all) + 4 + CHUNK_N;
    return true;
}
