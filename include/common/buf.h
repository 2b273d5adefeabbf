/* A growing byte buffer with a maximum, always NUL-terminated (the NUL is not counted in n).
 * Growing past the maximum sets `overflow` and drops that and all later bytes, so callers check
 * once at the end. */
#pragma once
#include "base.h"
#include "str.h"
#include <stdio.h>

struct buf {
    char *p; /* NULL until the first byte; use buf_cstr for printing */
    size_t n;
    size_t cap;
    size_t max;
    bool overflow;
};

#define BUF_INIT(max_bytes)                                                                        \
    {                                                                                              \
        .max = (max_bytes)                                                                         \
    }
void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);  /* frees the bytes; usable as a cleanup function */
void buf_reset(struct buf *b); /* empties it and keeps the memory */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_cstr(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* Append the rest of f. False: a read error (in errno) or, with `overflow` set, more bytes than
 * fit; b then has the bytes before. Reads no further than the first byte that does not fit. */
bool buf_add_file(struct buf *b, FILE *f) MUST_CHECK;
/* Returns space for n more bytes at p+n, or NULL when that passes the maximum. buf_commit says how
 * many were used. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* drop n bytes from the front */
const char *buf_cstr(const struct buf *b); /* never NULL */
struct str buf_str(const struct buf *b);
/* the bytes as a string the caller frees; the buffer is empty afterwards */
char *buf_take(struct buf *b);
