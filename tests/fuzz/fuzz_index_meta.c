/* The scanner of the picture's size against jansson: what that reads as an object is one here too,
 * with the same sides; and a string escaped by the line writer reads back as it was. */
#include "common/buf.h"
#include "fuzz.h"
#include "index/line.h"
#include "index/meta.h"
#include <jansson.h>

#define SIDE_MAX (1 << 20)

static int64_t side(const json_t *v, const char *key)
{
    const json_t *s = json_object_get(v, key);
    int64_t n = json_is_integer(s) ? json_integer_value(s) : 0;
    return n >= 1 && n <= SIDE_MAX ? n : 0;
}

/* Keys written with escapes, nesting beyond 32 and zero bytes between tokens, which jansson passes
 * over, are not compared. */
static int depth(const json_t *v)
{
    int most = 0;
    size_t i;
    const char *key;
    json_t *child;
    json_t *o;
    memcpy(&o, &v, sizeof o);
    json_object_foreach(o, key, child)
    {
        most = MAX(most, depth(child));
    }
    json_array_foreach(v, i, child)
    {
        most = MAX(most, depth(child));
    }
    return most + 1;
}

static void compare(const char *p, size_t n)
{
    int64_t w = 0;
    int64_t h = 0;
    enum meta_result got = meta_size((struct str){p, n}, &w, &h);
    ASSERT(got == META_OK ? w >= 1 && h >= 1 && w <= SIDE_MAX && h <= SIDE_MAX : w == 0 && h == 0);
    json_t *v = json_loadb(p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (json_is_object(v) && memchr(p, '\\', n) == NULL && memchr(p, '\0', n) == NULL &&
        depth(v) < 30) {
        int64_t want_w = side(v, "width");
        int64_t want_h = side(v, "height");
        bool both = want_w > 0 && want_h > 0;
        ASSERT(got == (both ? META_OK : META_NO_SIZE));
        ASSERT(!both || (w == want_w && h == want_h));
    }
    json_decref(v);
}

static void escape(const char *p, size_t n)
{
    struct buf out = BUF_INIT((size_t)8 << 20);
    line_escape(&out, (struct str){p, n});
    json_t *v = json_loadb(out.p, out.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    ASSERT(v != NULL);
    if (str_is_utf8((struct str){p, n})) {
        ASSERT(json_string_length(v) == n);
        ASSERT(n == 0 || memcmp(json_string_value(v), p, n) == 0);
    }
    json_decref(v);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    compare(p, size);
    escape(p, size);
    return 0;
}
