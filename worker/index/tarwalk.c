/* The header walk. Format: POSIX.1-2017, pax; GNU tar manual, "Basic Tar Format". */
#include "tarwalk.h"
#include "common/tar.h"

struct extra {    /* what extended headers say about the next member */
    int64_t size; /* -1: not said */
    size_t name_n;
    bool has_name, pending;
};

void tarwalk_init(struct tarwalk *w, struct source *src)
{
    w->src = src;
    w->at = 0;
    w->others = 0;
}

static bool bad(struct err *err, const char *what)
{
    return err_set(err, ERR_MALFORMED, "%s", what);
}

/* Octal text ended by NUL or space, or base 256 (positive only). */
static bool get_number(const uint8_t *p, size_t n, int64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;
    if (p[0] == 0x80) {
        for (i = 1; i < n; i++) {
            if (v > (uint64_t)INT64_MAX >> 8) {
                return false;
            }
            v = v << 8 | p[i];
        }
        *ret = (int64_t)v;
        return true;
    }
    while (i < n && p[i] == ' ') {
        i++;
    }
    for (; i < n && (uint8_t)(p[i] - '0') < 8; i++) {
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    *ret = (int64_t)v;
    return i == n || p[i] == '\0' || p[i] == ' ';
}

/* Sum of a header's bytes, eight at a time: 64 words add at most 64 * 510 to each 16-bit lane. */
static uint32_t sum_bytes(const uint8_t *h)
{
    const uint64_t mask = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t lanes = 0;
    for (size_t i = 0; i < TAR_BLOCK; i += 8) {
        uint64_t x;
        memcpy(&x, h + i, 8);
        lanes += (x & mask) + (x >> 8 & mask);
    }
    return (uint32_t)((lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) +
                      (lanes >> 48));
}

/* The checksum field itself counts as spaces. Some old programs summed signed bytes. */
static bool checksum_ok(const uint8_t *h)
{
    int64_t want;
    if (!get_number(h + 148, 8, &want)) {
        return false;
    }
    int64_t sum = (int64_t)sum_bytes(h) + INT64_C(8) * ' ';
    for (size_t i = 148; i < 156; i++) {
        sum -= h[i];
    }
    if (sum == want) {
        return true;
    }
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        sum -= (i < 148 || i >= 156) && h[i] >= 0x80 ? 256 : 0;
    }
    return sum == want;
}

static bool is_zero_block(const char *p)
{
    static const char zeros[TAR_BLOCK];
    return p[0] == '\0' && memcmp(p, zeros, TAR_BLOCK) == 0;
}

static bool keep_name(struct tarwalk *w, struct str name, struct extra *x, struct err *err)
{
    if (name.n == 0 || memchr(name.p, '\0', name.n) != NULL) {
        return bad(err, "an extended header's name is empty or has a zero byte");
    }
    if (name.n > TARWALK_NAME_MAX) {
        return err_set(err, ERR_LIMIT, "name of %zu bytes, at most %d are read", name.n,
                       TARWALK_NAME_MAX);
    }
    memcpy(w->name_, name.p, name.n);
    x->name_n = name.n;
    x->has_name = true;
    return true;
}

static bool pax_record(struct tarwalk *w, struct str rec, bool global, struct extra *x,
                       struct err *err)
{
    bool path = str_starts(rec, "path=");
    bool size = str_starts(rec, "size=");
    if (str_starts(rec, "GNU.sparse.")) {
        return bad(err, "sparse files are not read");
    }
    if (global && (path || size)) {
        return bad(err, "a global header sets path or size");
    }
    struct str value = {rec.p + 5, rec.n - 5};
    if (path) {
        return keep_name(w, value, x, err);
    }
    if (size && !parse_i64(value, 0, INT64_MAX, &x->size, NULL)) {
        return bad(err, "pax size is not a number");
    }
    return true;
}

/* "LEN key=value\n" over and over, LEN counting the whole record. */
static bool pax_records(struct tarwalk *w, struct str s, bool global, struct extra *x,
                        struct err *err)
{
    while (s.n > 0) {
        size_t len = 0;
        size_t i = 0;
        for (; i < s.n && len <= s.n && (uint8_t)(s.p[i] - '0') < 10; i++) {
            len = len * 10 + (size_t)(s.p[i] - '0');
        }
        if (i == 0 || i >= s.n || s.p[i] != ' ' || len < i + 4 || len > s.n ||
            s.p[len - 1] != '\n') {
            return bad(err, "broken pax record");
        }
        struct str rec = {s.p + i + 1, len - i - 2};
        if (memchr(rec.p, '=', rec.n) == NULL) {
            return bad(err, "pax record without '='");
        }
        char c = rec.p[0];
        if ((c == 'p' || c == 's' || c == 'G') && !pax_record(w, rec, global, x, err)) {
            return false;
        }
        s.p += len;
        s.n -= len;
    }
    return true;
}

static bool read_extended(struct tarwalk *w, char type, int64_t size, struct extra *x,
                          struct err *err)
{
    const char *p = "";
    if (type == 'K') {
        return true;
    }
    if (size > 0 && !source_need(w->src, w->at + TAR_BLOCK, (size_t)size, &p, err)) {
        return false;
    }
    if (type == 'L') {
        x->pending = true;
        return keep_name(w, (struct str){p, strnlen(p, (size_t)size)}, x, err);
    }
    x->pending |= type != 'g';
    return pax_records(w, (struct str){p, (size_t)size}, type == 'g', x, err);
}

/* Type and size of the header h at w->at; its data lies whole within the archive. */
static bool read_header(const struct tarwalk *w, const uint8_t *h, const struct extra *x,
                        char *ret_type, int64_t *ret_size, struct err *err)
{
    int64_t size;
    char type = (char)h[156];
    if (!checksum_ok(h)) {
        return bad(err, "header with a wrong checksum");
    }
    if (!get_number(h + 124, 12, &size)) {
        return bad(err, "size is not a number");
    }
    bool extended = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    if (extended && size > TARWALK_PAX_MAX) {
        return bad(err, "extended header too large");
    }
    if (!extended && x->size >= 0) {
        size = x->size;
    }
    if (type >= '1' && type <= '6') {
        size = 0; /* links, devices, folders: no data follows, even when the field says so */
    }
    int64_t left = w->src->size - w->at - TAR_BLOCK;
    if (size > left || (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK > left - size) {
        return bad(err, "data reaches past the end: the archive is cut off");
    }
    if (type == 'S') {
        return bad(err, "sparse files are not read");
    }
    *ret_type = type;
    *ret_size = size;
    return true;
}

/* The name from an extended header, else prefix/name of ustar. GNU headers have other fields in
 * place of the prefix. */
static struct str member_name(struct tarwalk *w, const char *h, const struct extra *x)
{
    if (x->has_name) {
        return (struct str){w->name_, x->name_n};
    }
    size_t name_n = strnlen(h, 100);
    if (h[345] == '\0' || memcmp(h + 257, "ustar\0", 6) != 0) {
        return (struct str){h, name_n};
    }
    size_t prefix_n = strnlen(h + 345, 155);
    memcpy(w->name_, h + 345, prefix_n);
    w->name_[prefix_n] = '/';
    memcpy(w->name_ + prefix_n + 1, h, name_n);
    return (struct str){w->name_, prefix_n + 1 + name_n};
}

static bool is_regular(char type, struct str name)
{
    return type == '0' || type == '7' ||
           (type == '\0' && (name.n == 0 || name.p[name.n - 1] != '/'));
}

bool tarwalk_next(struct tarwalk *w, struct tarwalk_member *ret, struct err *err)
{
    struct extra x = {.size = -1};
    err->code = ERR_NONE;
    for (;;) {
        const char *h;
        char type = 0;
        int64_t size = 0;
        if (w->src->size - w->at < TAR_BLOCK) {
            return bad(err, w->src->size == 0
                                ? "the file is empty"
                                : "ends without the zero block that ends an archive: cut off");
        }
        if (!source_need(w->src, w->at, TAR_BLOCK, &h, err)) {
            return false;
        }
        if (is_zero_block(h)) {
            return x.pending ? bad(err, "extended header without its member") : false;
        }
        if (!read_header(w, (const uint8_t *)h, &x, &type, &size, err)) {
            return false;
        }
        int64_t next = w->at + TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        if (type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K') {
            if (!read_extended(w, type, size, &x, err)) {
                return false;
            }
            w->at = next;
            continue;
        }
        struct str name = member_name(w, h, &x);
        if (!is_regular(type, name)) {
            w->others++;
            w->at = next;
            x = (struct extra){.size = -1};
            continue;
        }
        if (name.n == 0) {
            return bad(err, "a member without a name");
        }
        *ret = (struct tarwalk_member){name, w->at + TAR_BLOCK, size};
        w->at = next;
        return true;
    }
}
