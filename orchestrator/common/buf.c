/* A growing byte buffer with a maximum. */
#include "common/buf.h"
#include <stdarg.h>

#define BUF_FIRST_CAP  64
#define BUF_FILE_CHUNK 16384

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf)BUF_INIT(b->max);
}

void buf_reset(struct buf *b)
{
    b->n = 0;
    b->overflow = false;
    if (b->p != NULL) {
        b->p[0] = '\0';
    }
}

/* Room for n more bytes and the NUL. Doubling keeps appending linear; max bounds the last step. */
static void grow(struct buf *b, size_t n)
{
    ASSERT(n <= b->max - b->n);
    size_t want = b->n + n + 1;
    if (want <= b->cap) {
        return;
    }
    size_t cap = b->cap < BUF_FIRST_CAP ? BUF_FIRST_CAP : b->cap;
    while (cap < want) {
        cap = cap > SIZE_MAX / 2 ? want : cap * 2;
    }
    if (b->max < SIZE_MAX && cap > b->max + 1) {
        cap = b->max + 1;
    }
    b->p = xrealloc(b->p, cap);
    b->cap = cap;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (b->overflow || n == 0) {
        return;
    }
    if (n > b->max - b->n) {
        b->overflow = true;
        n = b->max - b->n;
        if (n == 0) {
            return;
        }
    }
    grow(b, n);
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}

void buf_add_cstr(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    if ((size_t)n < sizeof small) {
        buf_add(b, small, (size_t)n);
        return;
    }
    char *big = xmalloc((size_t)n + 1);
    va_start(ap, fmt);
    (void)vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf_add(b, big, (size_t)n);
    free(big);
}

bool buf_add_file(struct buf *b, FILE *f)
{
    while (!b->overflow) {
        size_t room = MIN(b->max - b->n, BUF_FILE_CHUNK);
        if (room == 0) { /* full: one byte more tells a file that just fits from a longer one */
            b->overflow = fgetc(f) != EOF;
            break;
        }
        grow(b, room);
        size_t n = fread(b->p + b->n, 1, room, f);
        buf_commit(b, n);
        if (n < room) {
            break;
        }
    }
    return !b->overflow && ferror(f) == 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->overflow || n > b->max - b->n) {
        b->overflow = true;
        return NULL;
    }
    grow(b, n);
    return b->p + b->n;
}

void buf_commit(struct buf *b, size_t n)
{
    ASSERT(b->n + n < b->cap || (n == 0 && b->cap == 0));
    b->n += n;
    if (b->p != NULL) {
        b->p[b->n] = '\0';
    }
}

void buf_consume(struct buf *b, size_t n)
{
    ASSERT(n <= b->n);
    if (n == 0) {
        return;
    }
    memmove(b->p, b->p + n, b->n - n + 1);
    b->n -= n;
}

const char *buf_cstr(const struct buf *b)
{
    return b->p == NULL ? "" : b->p;
}

struct str buf_str(const struct buf *b)
{
    return (struct str){buf_cstr(b), b->n};
}

char *buf_take(struct buf *b)
{
    char *p = b->p == NULL ? xstrdup("") : b->p;
    *b = (struct buf)BUF_INIT(b->max);
    return p;
}
