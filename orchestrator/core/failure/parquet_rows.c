/* Reads just enough of the Thrift compact protocol: skips version and schema, reads num_rows. */
#include "parquet_rows.h"

#define FOOTER_MAX (16 * 1024 * 1024)
#define DEPTH_MAX  16
#define ITEMS_MAX  1000000

enum thrift_type {
    T_STOP,
    T_TRUE,
    T_FALSE,
    T_BYTE,
    T_I16,
    T_I32,
    T_I64,
    T_DOUBLE,
    T_BINARY,
    T_LIST,
    T_SET,
    T_MAP,
    T_STRUCT
};

bool parquet_footer_n(struct str tail, int64_t file_size, int64_t *ret)
{
    if (tail.n != PARQUET_TAIL || memcmp(tail.p + 4, "PAR1", 4) != 0) {
        return false;
    }
    uint32_t n = 0;
    for (int i = 3; i >= 0; i--) {
        n = n << 8 | (uint8_t)tail.p[i];
    }
    if (n == 0 || n > FOOTER_MAX || (int64_t)n + PARQUET_TAIL > file_size) {
        return false;
    }
    *ret = (int64_t)n;
    return true;
}

static bool take(struct str *s, size_t n)
{
    if (s->n < n) {
        return false;
    }
    s->p += n;
    s->n -= n;
    return true;
}

static bool read_byte(struct str *s, uint8_t *ret)
{
    if (s->n == 0) {
        return false;
    }
    *ret = (uint8_t)s->p[0];
    return take(s, 1);
}

static bool read_varint(struct str *s, uint64_t *ret)
{
    uint64_t v = 0;
    uint8_t b;
    for (int shift = 0; shift < 64; shift += 7) {
        if (!read_byte(s, &b)) {
            return false;
        }
        v |= (uint64_t)(b & 0x7fU) << shift;
        if ((b & 0x80U) == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool skip(struct str *s, enum thrift_type type, int depth);

static bool skip_list(struct str *s, int depth)
{
    uint8_t head;
    uint64_t n;
    if (!read_byte(s, &head)) {
        return false;
    }
    n = head >> 4;
    if (n == 15 && !read_varint(s, &n)) {
        return false;
    }
    enum thrift_type type = (enum thrift_type)(head & 0x0fU);
    if (n > ITEMS_MAX || type > T_STRUCT) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        bool ok = type == T_TRUE || type == T_FALSE ? take(s, 1) : skip(s, type, depth + 1);
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Next field's type and id; type T_STOP at the struct's end. */
static bool read_field(struct str *s, int64_t *id, enum thrift_type *ret)
{
    uint8_t head;
    uint64_t v;
    if (!read_byte(s, &head)) {
        return false;
    }
    *ret = (enum thrift_type)(head & 0x0fU);
    if (head == 0) {
        return true;
    }
    if (head >> 4 != 0) {
        *id += head >> 4;
    } else if (read_varint(s, &v) && v <= INT32_MAX) {
        *id = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
    } else {
        return false;
    }
    return *ret != T_STOP && *ret <= T_STRUCT;
}

static bool skip_struct(struct str *s, int depth)
{
    enum thrift_type type;
    int64_t id = 0;
    while (read_field(s, &id, &type)) {
        if (type == T_STOP) {
            return true;
        }
        if (!skip(s, type, depth + 1)) {
            return false;
        }
    }
    return false;
}

static bool skip(struct str *s, enum thrift_type type, int depth)
{
    uint64_t v;
    if (depth > DEPTH_MAX) {
        return false;
    }
    switch (type) {
    case T_TRUE:
    case T_FALSE:
        return true; /* the value is in the field's type */
    case T_BYTE:
        return take(s, 1);
    case T_I16:
    case T_I32:
    case T_I64:
        return read_varint(s, &v);
    case T_DOUBLE:
        return take(s, 8);
    case T_BINARY:
        return read_varint(s, &v) && v <= s->n && take(s, (size_t)v);
    case T_LIST:
    case T_SET:
        return skip_list(s, depth);
    case T_STRUCT:
        return skip_struct(s, depth);
    case T_MAP: /* no map comes before num_rows */
    case T_STOP:
        return false;
    }
    return false;
}

bool parquet_rows(struct str footer, int64_t *ret)
{
    enum thrift_type type;
    int64_t id = 0;
    uint64_t v;
    while (read_field(&footer, &id, &type) && type != T_STOP) {
        if (id == 3) {
            if (type != T_I64 || !read_varint(&footer, &v)) {
                return false;
            }
            int64_t rows = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
            if (rows < 0) {
                return false;
            }
            *ret = rows;
            return true;
        }
        if (!skip(&footer, type, 0)) {
            return false;
        }
    }
    return false;
}
