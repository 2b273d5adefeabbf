/* A footer is a FileMetaData of the Thrift compact protocol. It is copied value by value; on the
 * way the offsets of row groups and column chunks are moved. Field numbers: parquet.thrift. */
#include "parquet_join.h"

#define MAGIC       "PAR1"
#define MAGIC_N     4
#define TAIL_N      8 /* length of the footer, magic */
#define DEPTH_MAX   16
#define SHORT_LIST  15
#define HEAD_BYTES  (4u << 20)
#define VARINT_BITS 64

enum thrift { /* types on the wire */
              T_STOP = 0,
              T_TRUE = 1,
              T_FALSE = 2,
              T_BYTE = 3,
              T_I16 = 4,
              T_I32 = 5,
              T_I64 = 6,
              T_DOUBLE = 7,
              T_BINARY = 8,
              T_LIST = 9,
              T_SET = 10,
              T_STRUCT = 12
};

/* What a struct is, as far as offsets are concerned. */
enum place { IN_OTHER, IN_ROW_GROUP, IN_COLUMN, IN_META };

struct footer_copy {
    const uint8_t *at, *end;
    struct buf *out; /* NULL: only skip */
    int64_t shift;   /* of offsets */
    int64_t ordinal; /* of the row group */
    bool bad;
};

static uint8_t get_byte(struct footer_copy *c)
{
    if (c->at == c->end) {
        c->bad = true;
        return 0;
    }
    return *c->at++;
}

static uint64_t get_varint(struct footer_copy *c)
{
    uint64_t v = 0;
    for (int shift = 0; shift < VARINT_BITS; shift += 7) {
        uint8_t b = get_byte(c);
        v |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0) {
            return v;
        }
    }
    c->bad = true;
    return 0;
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

static void put(struct footer_copy *c, const void *p, size_t n)
{
    if (c->out != NULL) {
        buf_add(c->out, p, n);
    }
}

static void add_varint(struct buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        buf_add_char(out, (char)(0x80 | (v & 0x7f)));
    }
    buf_add_char(out, (char)v);
}

static void add_zigzag(struct buf *out, int64_t v)
{
    add_varint(out, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

static void copy_bytes(struct footer_copy *c, uint64_t n)
{
    if (n > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return;
    }
    put(c, c->at, (size_t)n);
    c->at += n;
}

/* The value of an integer field. 0 says that an offset is not known. */
static int64_t moved(const struct footer_copy *c, enum place in, int field, int64_t v)
{
    bool offset = false;
    switch (in) {
    case IN_ROW_GROUP:
        if (field == 7) { /* ordinal */
            return c->ordinal;
        }
        offset = field == 5; /* file_offset */
        break;
    case IN_COLUMN: /* file_offset, offset_index_offset, column_index_offset */
        offset = field == 2 || field == 4 || field == 6;
        break;
    case IN_META: /* data, index and dictionary pages, bloom filter */
        offset = field == 9 || field == 10 || field == 11 || field == 14;
        break;
    case IN_OTHER:
        break;
    }
    return offset && v > 0 && v < INT64_MAX / 2 ? v + c->shift : v;
}

static void copy_int(struct footer_copy *c, enum place in, int field)
{
    int64_t v = unzigzag(get_varint(c));
    if (c->out != NULL) {
        add_zigzag(c->out, moved(c, in, field, v));
    }
}

static void copy_binary(struct footer_copy *c)
{
    uint64_t n = get_varint(c);
    if (c->out != NULL) {
        add_varint(c->out, n);
    }
    copy_bytes(c, n);
}

static enum place inside(enum place in, int field)
{
    return in == IN_ROW_GROUP && field == 1 ? IN_COLUMN
           : in == IN_COLUMN && field == 3  ? IN_META
                                            : IN_OTHER;
}

static void copy_struct(struct footer_copy *c, enum place in, int depth);

/* Header of a list: the type of its elements; *ret_n of them. */
static uint8_t get_list(struct footer_copy *c, uint64_t *ret_n)
{
    uint8_t head = get_byte(c);
    uint64_t n = head >> 4;
    put(c, &head, 1);
    if (n == SHORT_LIST) {
        n = get_varint(c);
        if (c->out != NULL) {
            add_varint(c->out, n);
        }
    }
    *ret_n = n;
    return head & 0x0f;
}

static void copy_value(struct footer_copy *c, uint8_t type, enum place in, int field, int depth);

static void copy_list(struct footer_copy *c, enum place in, int field, int depth)
{
    uint64_t n;
    uint8_t type = get_list(c, &n);
    for (uint64_t i = 0; i < n && !c->bad; i++) {
        if (type == T_TRUE || type == T_FALSE) {
            copy_bytes(c, 1);
        } else if (type == T_STRUCT) {
            copy_struct(c, inside(in, field), depth + 1);
        } else {
            copy_value(c, type, IN_OTHER, 0, depth + 1);
        }
    }
}

static void copy_value(struct footer_copy *c, uint8_t type, enum place in, int field, int depth)
{
    if (depth > DEPTH_MAX) {
        c->bad = true;
        return;
    }
    if (type == T_I16 || type == T_I32 || type == T_I64) {
        copy_int(c, in, field);
    } else if (type == T_BYTE) {
        copy_bytes(c, 1);
    } else if (type == T_DOUBLE) {
        copy_bytes(c, 8);
    } else if (type == T_BINARY) {
        copy_binary(c);
    } else if (type == T_LIST || type == T_SET) {
        copy_list(c, in, field, depth);
    } else if (type == T_STRUCT) {
        copy_struct(c, inside(in, field), depth + 1);
    } else if (type != T_TRUE && type != T_FALSE) { /* whose value is their type */
        c->bad = true;
    }
}

/* Header of a field: its type, T_STOP at the end of the struct; *field: the one before, then it. */
static uint8_t get_field(struct footer_copy *c, int *field)
{
    uint8_t head = get_byte(c);
    put(c, &head, 1);
    if (head == T_STOP) {
        return T_STOP;
    }
    if (head >> 4 != 0) {
        *field += head >> 4;
    } else {
        int64_t id = unzigzag(get_varint(c));
        c->bad = c->bad || id < 0 || id > INT16_MAX;
        *field = (int)(id & INT16_MAX);
        if (c->out != NULL) {
            add_zigzag(c->out, *field);
        }
    }
    return head & 0x0f;
}

static void copy_struct(struct footer_copy *c, enum place in, int depth)
{
    int field = 0;
    if (depth > DEPTH_MAX) {
        c->bad = true;
    }
    while (!c->bad) {
        uint8_t type = get_field(c, &field);
        if (type == T_STOP) {
            return;
        }
        copy_value(c, type, in, field, depth);
    }
}

void parquet_join_init(struct parquet_join *j)
{
    *j = (struct parquet_join){.head = BUF_INIT(HEAD_BYTES),
                               .groups = BUF_INIT(PARQUET_JOIN_FOOTER_BYTES_MAX - 3 * HEAD_BYTES),
                               .tail = BUF_INIT(HEAD_BYTES)};
}

void parquet_join_done(struct parquet_join *j)
{
    buf_done(&j->head);
    buf_done(&j->groups);
    buf_done(&j->tail);
}

static bool same(const struct buf *b, const uint8_t *p, size_t n)
{
    return b->n == n && (n == 0 || memcmp(b->p, p, n) == 0);
}

/* Keep what comes before the rows and behind the row groups, or compare with the first file's. */
static bool keep(struct buf *b, bool first, const uint8_t *from, const uint8_t *to)
{
    if (first) {
        buf_add(b, from, (size_t)(to - from));
    }
    return same(b, from, (size_t)(to - from));
}

/* Fields 1 version, 2 schema, 3 number of rows, 4 row groups, then others. */
static bool add_footer(struct parquet_join *j, struct footer_copy *c)
{
    const uint8_t *begin = c->at;
    bool first = j->groups_n == 0;
    int field = 0;
    uint64_t n;
    for (int want = 1; want <= 2; want++) {
        uint8_t type = get_field(c, &field);
        copy_value(c, type, IN_OTHER, 0, 0);
        if (c->bad || field != want) {
            return false;
        }
    }
    if (!keep(&j->head, first, begin, c->at) || get_field(c, &field) != T_I64 || field != 3) {
        return false;
    }
    int64_t rows = unzigzag(get_varint(c));
    if (rows < 0 || rows > INT32_MAX) {
        return false;
    }
    j->rows += rows;
    if (get_field(c, &field) != T_LIST || field != 4 || get_list(c, &n) != T_STRUCT) {
        return false;
    }
    c->out = &j->groups;
    for (uint64_t i = 0; i < n && !c->bad; i++) {
        c->ordinal = j->groups_n++;
        copy_struct(c, IN_ROW_GROUP, 0);
    }
    c->out = NULL;
    return !c->bad && n > 0 && keep(&j->tail, first, c->at, c->end) && !j->groups.overflow;
}

bool parquet_join_add(struct parquet_join *j, struct str file, struct str *ret_data,
                      struct err *err)
{
    const uint8_t *p = (const uint8_t *)file.p;
    bool ok = file.n > MAGIC_N + TAIL_N && memcmp(p, MAGIC, MAGIC_N) == 0 &&
              memcmp(p + file.n - MAGIC_N, MAGIC, MAGIC_N) == 0;
    size_t n = 0;
    if (ok) {
        const uint8_t *t = p + file.n - TAIL_N;
        n = (size_t)t[0] | (size_t)t[1] << 8 | (size_t)t[2] << 16 | (size_t)t[3] << 24;
        ok = n <= file.n - MAGIC_N - TAIL_N;
    }
    size_t skip = j->size == 0 ? 0 : MAGIC_N; /* one magic is enough */
    struct footer_copy c = {.shift = j->size - (int64_t)skip};
    if (ok) {
        c.end = p + file.n - TAIL_N;
        c.at = c.end - n;
        ok = add_footer(j, &c);
    }
    if (!ok) {
        return err_set(err, ERR_INTERNAL, "parquet: a row group's footer is not as expected");
    }
    *ret_data = (struct str){file.p + skip, file.n - TAIL_N - n - skip};
    j->size += (int64_t)ret_data->n;
    return true;
}

bool parquet_join_end(const struct parquet_join *j, struct buf *out, struct err *err)
{
    size_t at = out->n;
    ASSERT(j->groups_n > 0);
    buf_add_str(out, buf_str(&j->head));
    buf_add_char(out, 1 << 4 | T_I64); /* field 3 */
    add_zigzag(out, j->rows);
    buf_add_char(out, 1 << 4 | T_LIST); /* field 4 */
    if (j->groups_n < SHORT_LIST) {
        buf_add_char(out, (char)(j->groups_n << 4 | T_STRUCT));
    } else {
        buf_add_char(out, (char)(uint8_t)(SHORT_LIST << 4 | T_STRUCT));
        add_varint(out, (uint64_t)j->groups_n);
    }
    buf_add_str(out, buf_str(&j->groups));
    buf_add_str(out, buf_str(&j->tail));
    size_t n = out->n - at;
    for (int i = 0; i < 4; i++) {
        buf_add_char(out, (char)(n >> (8 * i) & 0xff));
    }
    buf_add_cstr(out, MAGIC);
    return !out->overflow || err_set(err, ERR_LIMIT, "parquet: a footer of %zu bytes", n);
}
