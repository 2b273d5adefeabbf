/* Reading tar: ustar, pax and GNU long names; only regular files are returned, with the exact
 * offset of their data. Archives are untrusted: everything is checked against the bytes available.
 * Invariant: r->at never passes r->in.n. */
#include "common/tar.h"

#define TAR_PAX_BYTES_MAX INT64_C(65536) /* of one extended header */

/* What extended headers say about the next member. */
struct tar_extra {
    bool has_name;
    int64_t size;  /* -1: not said */
    int64_t mtime; /* INT64_MIN: not said */
};

void tar_reader_init(struct tar_reader *r, struct str in)
{
    *r = (struct tar_reader){.in = in};
}

static bool bad(const struct tar_reader *r, struct err *err, const char *what)
{
    return err_set(err, ERR_MALFORMED, "tar at byte %zu: %s", r->at, what);
}

/* Octal text ended by NUL or space, or GNU's base 256 (high bit set, positive only). */
static bool get_number(const uint8_t *p, size_t n, int64_t *ret)
{
    uint64_t v = 0;
    if (p[0] == 0x80) {
        for (size_t i = 1; i < n; i++) {
            if (v > (uint64_t)INT64_MAX >> 8) {
                return false;
            }
            v = v << 8 | p[i];
        }
        *ret = (int64_t)v;
        return true;
    }
    size_t i = 0;
    while (i < n && p[i] == ' ') {
        i++;
    }
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    for (; i < n; i++) {
        if (p[i] != '\0' && p[i] != ' ') {
            return false;
        }
    }
    *ret = (int64_t)v;
    return true;
}

static bool checksum_ok(const uint8_t *h)
{
    int64_t want;
    int64_t sum = 0;
    if (!get_number(h + 148, 8, &want)) {
        return false;
    }
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    }
    return sum == want;
}

static bool is_zero_block(const char *p)
{
    static const char zeros[TAR_BLOCK];
    return memcmp(p, zeros, TAR_BLOCK) == 0;
}

/* Relative, without "..", and no longer than name_. */
static bool name_ok(struct str name)
{
    if (name.n == 0 || name.p[0] == '/' || memchr(name.p, '\0', name.n) != NULL) {
        return false;
    }
    while (name.n > 0) {
        if (str_eq_cstr(str_split(&name, '/'), "..")) {
            return false;
        }
    }
    return true;
}

static bool set_name(struct tar_reader *r, struct str name, struct err *err)
{
    if (name.n >= sizeof r->name_) {
        return err_set(err, ERR_LIMIT, "tar at byte %zu: name of %zu bytes, at most %zu are read",
                       r->at, name.n, sizeof r->name_ - 1);
    }
    if (!name_ok(name)) {
        return bad(r, err, "a member's name is empty, absolute or leads out of the archive");
    }
    memcpy(r->name_, name.p, name.n);
    r->name_[name.n] = '\0';
    return true;
}

/* Seconds of a pax time "1795148923.71"; the fraction is dropped; a sign is rejected. */
static bool pax_seconds(struct str s, int64_t *ret)
{
    struct str whole = str_split(&s, '.');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return false;
        }
    }
    return parse_i64(whole, INT64_MIN + 1, INT64_MAX, ret, NULL);
}

static bool pax_record(struct tar_reader *r, struct str key, struct str value, bool global,
                       struct tar_extra *x, struct err *err)
{
    if (str_starts(key, "GNU.sparse.")) {
        return bad(r, err, "sparse files are not read");
    }
    bool path = str_eq_cstr(key, "path");
    bool size = str_eq_cstr(key, "size");
    if (global && (path || size)) {
        return bad(r, err, "a global header sets path or size");
    }
    if (path) {
        x->has_name = true;
        return set_name(r, value, err);
    }
    if (size && !parse_i64(value, 0, INT64_MAX, &x->size, NULL)) {
        return bad(r, err, "pax size is not a number");
    }
    if (str_eq_cstr(key, "mtime") && !global && !pax_seconds(value, &x->mtime)) {
        return bad(r, err, "pax mtime is not a number");
    }
    return true;
}

/* "LEN key=value\n" over and over, LEN counting the whole record. */
static bool pax_records(struct tar_reader *r, struct str s, bool global, struct tar_extra *x,
                        struct err *err)
{
    while (s.n > 0) {
        struct str rest = s;
        struct str digits = str_split(&rest, ' ');
        int64_t len;
        if (!parse_i64(digits, (int64_t)digits.n + 4, (int64_t)s.n, &len, NULL) ||
            s.p[len - 1] != '\n') {
            return bad(r, err, "broken pax record");
        }
        struct str value = {rest.p, (size_t)len - digits.n - 2};
        if (memchr(value.p, '=', value.n) == NULL) {
            return bad(r, err, "pax record without '='");
        }
        struct str key = str_split(&value, '=');
        if (!pax_record(r, key, value, global, x, err)) {
            return false;
        }
        s.p += len;
        s.n -= (size_t)len;
    }
    return true;
}

/* prefix/name of a ustar header; GNU and old headers have other things where the prefix is. */
static bool header_name(struct tar_reader *r, const char *h, struct err *err)
{
    char joined[257];
    size_t name_n = strnlen(h, 100);
    size_t prefix_n = memcmp(h + 257, "ustar\0", 6) == 0 ? strnlen(h + 345, 155) : 0;
    size_t at = 0;
    if (prefix_n > 0) {
        memcpy(joined, h + 345, prefix_n);
        joined[prefix_n] = '/';
        at = prefix_n + 1;
    }
    memcpy(joined + at, h, name_n);
    return set_name(r, (struct str){joined, at + name_n}, err);
}

/* An 'x', 'g' or 'L' entry: describes the member behind it. */
static bool read_extended(struct tar_reader *r, char type, struct str data, struct tar_extra *x,
                          struct err *err)
{
    if (type != 'L') {
        return pax_records(r, data, type == 'g', x, err);
    }
    x->has_name = true;
    return set_name(r, (struct str){data.p, strnlen(data.p, data.n)}, err);
}

/* Header at r->at to type and size; its data lies whole within the archive. */
static bool read_header(struct tar_reader *r, char *ret_type, int64_t *ret_size,
                        struct tar_extra *x, struct err *err)
{
    const uint8_t *h = (const uint8_t *)r->in.p + r->at;
    int64_t size;
    if (!checksum_ok(h)) {
        return bad(r, err, "header with a wrong checksum");
    }
    if (!get_number(h + 124, 12, &size)) {
        return bad(r, err, "size is not a number");
    }
    char type = (char)h[156];
    bool extended = type == 'x' || type == 'g' || type == 'L';
    if (extended && size > TAR_PAX_BYTES_MAX) {
        return bad(r, err, "extended header too large");
    }
    if (!extended && x->size >= 0) {
        size = x->size;
    }
    size_t left = r->in.n - r->at - TAR_BLOCK;
    if ((uint64_t)size > left ||
        (TAR_BLOCK - (size_t)size % TAR_BLOCK) % TAR_BLOCK > left - (size_t)size) {
        return bad(r, err, "data reaches past the end");
    }
    *ret_type = type;
    *ret_size = size;
    return true;
}

static void skip_member(struct tar_reader *r, int64_t size)
{
    size_t blocks = ((size_t)size + TAR_BLOCK - 1) / TAR_BLOCK;
    r->at += TAR_BLOCK + blocks * TAR_BLOCK;
}

/* A regular file: fill *ret. Other kinds but folders are refused before this. */
static bool emit(struct tar_reader *r, int64_t size, const struct tar_extra *x,
                 struct tar_member *ret, struct err *err)
{
    int64_t mtime = x->mtime;
    if (mtime == INT64_MIN && !get_number((const uint8_t *)r->in.p + r->at + 136, 12, &mtime)) {
        return bad(r, err, "mtime is not a number");
    }
    *ret = (struct tar_member){.name = str_of(r->name_),
                               .size = size,
                               .offset = (int64_t)(r->at + TAR_BLOCK),
                               .mtime_s = mtime};
    return true;
}

bool tar_next(struct tar_reader *r, struct tar_member *ret, struct err *err)
{
    struct tar_extra x = {.size = -1, .mtime = INT64_MIN};
    bool pending = false; /* an extended header waits for its member */
    err_clear(err);
    for (;;) {
        char type = 0;
        int64_t size = 0;
        if (r->in.n - r->at < TAR_BLOCK) {
            return bad(r, err, "ends without the zero blocks that end an archive");
        }
        if (is_zero_block(r->in.p + r->at)) {
            return pending ? bad(r, err, "extended header without its member") : false;
        }
        if (!read_header(r, &type, &size, &x, err)) {
            return false;
        }
        if (type == 'x' || type == 'g' || type == 'L') {
            struct str data = {r->in.p + r->at + TAR_BLOCK, (size_t)size};
            if (!read_extended(r, type, data, &x, err)) {
                return false;
            }
            pending = pending || type != 'g';
            skip_member(r, size);
            continue;
        }
        if (type != '0' && type != '\0' && type != '5') {
            return bad(r, err, "links, devices, sparse and other special files are not read");
        }
        if (!x.has_name && !header_name(r, r->in.p + r->at, err)) {
            return false;
        }
        if (type == '5') { /* a folder has no data; its name was checked above */
            if (size != 0) {
                return bad(r, err, "a folder with data");
            }
            skip_member(r, size);
            x = (struct tar_extra){.size = -1, .mtime = INT64_MIN};
            pending = false;
            continue;
        }
        bool ok = emit(r, size, &x, ret, err);
        skip_member(r, size);
        return ok;
    }
}
