/* The writer of index lines. */
#include "line.h"

#define ESCAPED_MAX 6 /* bytes that one byte of a string becomes at most */
#define FIXED_MAX   256

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* Copy bytes from p to o until one needs escaping, in steps of 16; returns their number. Does not
 * read beyond p + n. */
static size_t copy_plain(char *o, const char *p, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        bytes16 v;
        uint64_t odd[2];
        memcpy(&v, p + i, 16);
        memcpy(o + i, &v, 16);
        bytes16 special =
            (bytes16)((v - 0x20) >= 0x60) | (bytes16)(v == '"') | (bytes16)(v == '\\');
        memcpy(odd, &special, 16);
        if ((odd[0] | odd[1]) != 0) {
            break;
        }
    }
    return i;
}

/* Length of the well-formed sequence at p; 0 when it is malformed. */
static size_t utf8_len(const char *p, size_t n)
{
    uint8_t c = (uint8_t)p[0];
    size_t len = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    return len > 0 && len <= n && str_is_utf8((struct str){p, len}) ? len : 0;
}

static char *put(char *o, const char *p, size_t n)
{
    memcpy(o, p, n);
    return o + n;
}
#define PUT(o, literal) put((o), (literal), sizeof(literal) - 1)

static char *put_control(char *o, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    switch (c) {
    case '"':
        return PUT(o, "\\\"");
    case '\\':
        return PUT(o, "\\\\");
    case '\n':
        return PUT(o, "\\n");
    case '\r':
        return PUT(o, "\\r");
    case '\t':
        return PUT(o, "\\t");
    default:
        o = PUT(o, "\\u00");
        *o++ = hex[c >> 4];
        *o++ = hex[c & 15];
        return o;
    }
}

/* The inside of a string; o has room for ESCAPED_MAX * s.n bytes. */
static char *put_escaped(char *o, struct str s)
{
    size_t i = 0;
    while (i < s.n) {
        size_t plain = copy_plain(o, s.p + i, s.n - i);
        i += plain;
        o += plain;
        size_t end = MIN(s.n, i + 16);
        while (i < end) {
            uint8_t c = (uint8_t)s.p[i];
            if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
                *o++ = (char)c;
                i++;
            } else if (c < 0x80) {
                o = put_control(o, c);
                i++;
            } else {
                size_t len = utf8_len(s.p + i, s.n - i);
                o = len > 0 ? put(o, s.p + i, len) : PUT(o, "\xef\xbf\xbd");
                i += MAX(len, (size_t)1);
            }
        }
    }
    return o;
}

static char *put_number(char *o, int64_t v)
{
    char digits[24];
    size_t n = sizeof digits;
    uint64_t u = (uint64_t)v;
    ASSERT(v >= 0);
    do {
        digits[--n] = (char)('0' + u % 10);
        u /= 10;
    } while (u > 0);
    return put(o, digits + n, sizeof digits - n);
}

void line_escape(struct buf *out, struct str s)
{
    char *start = buf_reserve(out, s.n * ESCAPED_MAX + 2);
    if (start == NULL) {
        return;
    }
    char *o = PUT(start, "\"");
    o = put_escaped(o, s);
    o = PUT(o, "\"");
    buf_commit(out, (size_t)(o - start));
}

void line_add(struct buf *out, unsigned fields, struct str path, const struct line_pair *p)
{
    char *start = buf_reserve(out, path.n + 2 * ESCAPED_MAX * p->key.n + ESCAPED_MAX * p->suffix.n +
                                       p->caption.n + FIXED_MAX);
    if (start == NULL) {
        return;
    }
    char *o = start;
    if ((fields & LINE_PATH) != 0) {
        o = put(PUT(o, ",\"path\":"), path.p, path.n);
    }
    if ((fields & LINE_KEY) != 0) {
        o = put_escaped(PUT(o, ",\"key\":\""), p->key);
        o = PUT(o, "\"");
    }
    if ((fields & LINE_IMAGE) != 0) {
        o = put_escaped(PUT(o, ",\"image\":\""), p->key);
        o = put_escaped(PUT(o, "."), p->suffix);
        o = PUT(o, "\"");
    }
    if ((fields & LINE_OFFSET) != 0) {
        o = put_number(PUT(o, ",\"offset\":"), p->offset);
    }
    if ((fields & LINE_SIZE) != 0) {
        o = put_number(PUT(o, ",\"size\":"), p->size);
    }
    if ((fields & LINE_CAPTION) != 0) {
        o = p->caption.n == 0 ? PUT(o, ",\"caption\":null")
                              : put(PUT(o, ",\"caption\":"), p->caption.p, p->caption.n);
    }
    if ((fields & LINE_WIDTH) != 0) {
        o = put_number(PUT(o, ",\"width\":"), p->width);
    }
    if ((fields & LINE_HEIGHT) != 0) {
        o = put_number(PUT(o, ",\"height\":"), p->height);
    }
    ASSERT(o > start);
    start[0] = '{';
    o = PUT(o, "}\n");
    buf_commit(out, (size_t)(o - start));
}

uint64_t line_key_hash(struct str key)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < key.n; i++) {
        h = (h ^ (uint8_t)key.p[i]) * UINT64_C(0x100000001b3);
    }
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}
