/* Framing and protobuf by hand: three message types do not need a library. */
#include "tfrecord.h"
#include "common/cleanup.h"
#include "common/json.h"
#include <inttypes.h>
#include <jansson.h>

#define CRC32C_POLYNOMIAL 0x82f63b78u /* reflected */
#define MASK_DELTA        0xa282ead8u
#define SLICES            TFRECORD_CRC_SLICES
#define EXAMPLE_BYTES_MAX ((size_t)IMAGE_OUT_BYTES_MAX + (128u << 20))

/* Tags: field number * 8 + wire type. */
#define TAG_FIRST      0x0a /* field 1, of a length: in every message here the only or first one */
#define TAG_VALUE      0x12 /* of a map's entry */
#define TAG_BYTES_LIST 0x0a /* of a Feature */
#define TAG_FLOAT_LIST 0x12
#define TAG_INT64_LIST 0x1a

void tfrecord_crc_init(struct tfrecord_crc *ret)
{
    uint32_t(*t)[256] = ret->tables;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) {
            c = (c >> 1) ^ ((c & 1) != 0 ? CRC32C_POLYNOMIAL : 0);
        }
        t[0][i] = c;
    }
    for (int k = 1; k < SLICES; k++) {
        for (int i = 0; i < 256; i++) {
            uint32_t c = t[k - 1][i];
            t[k][i] = (c >> 8) ^ t[0][c & 0xff];
        }
    }
}

/* Eight bytes at a time, a table for each. */
uint32_t tfrecord_crc32c(const struct tfrecord_crc *tables, const void *p, size_t n)
{
    const uint32_t(*t)[256] = tables->tables;
    const uint8_t *at = p;
    uint32_t c = ~0u;
    for (; n >= SLICES; n -= SLICES, at += SLICES) {
        uint32_t low = c ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                            (uint32_t)at[3] << 24);
        c = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
            t[3][at[4]] ^ t[2][at[5]] ^ t[1][at[6]] ^ t[0][at[7]];
    }
    for (; n > 0; n--, at++) {
        c = (c >> 8) ^ t[0][(c ^ *at) & 0xff];
    }
    return ~c;
}

static void add_le(struct buf *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_add_char(out, (char)(v >> (8 * i) & 0xff));
    }
}

static void add_masked_crc(const struct tfrecord_crc *t, struct buf *out, const void *p, size_t n)
{
    uint32_t c = tfrecord_crc32c(t, p, n);
    add_le(out, (uint32_t)((c >> 15 | c << 17) + MASK_DELTA), 4);
}

void tfrecord_add(const struct tfrecord_crc *t, struct buf *out, struct str data)
{
    size_t at = out->n;
    add_le(out, data.n, 8);
    if (!out->overflow) {
        add_masked_crc(t, out, out->p + at, 8);
    }
    buf_add_str(out, data);
    add_masked_crc(t, out, data.p, data.n);
}

static void add_varint(struct buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        buf_add_char(out, (char)(0x80 | (v & 0x7f)));
    }
    buf_add_char(out, (char)v);
}

static size_t varint_n(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7) {
        n++;
    }
    return n;
}

/* Bytes of a field of n bytes with its tag and length. */
static size_t field_n(size_t n)
{
    return 1 + varint_n(n) + n;
}

static void add_head(struct buf *out, char tag, size_t n)
{
    buf_add_char(out, tag);
    add_varint(out, n);
}

static void add_field(struct buf *out, char tag, struct str data)
{
    add_head(out, tag, data.n);
    buf_add_str(out, data);
}

/* The entry of the map up to its list, whose content has n bytes. */
static void add_entry(struct buf *out, const char *key, char list_tag, size_t n)
{
    struct str k = str_of(key);
    size_t feature = field_n(n);
    add_head(out, TAG_FIRST, field_n(k.n) + field_n(feature));
    add_field(out, TAG_FIRST, k);
    add_head(out, TAG_VALUE, feature);
    add_head(out, list_tag, n);
}

static void add_bytes(struct buf *out, const char *key, struct str v)
{
    add_entry(out, key, TAG_BYTES_LIST, field_n(v.n));
    add_field(out, TAG_FIRST, v);
}

static void add_text(struct buf *out, const char *key, const char *v)
{
    add_bytes(out, key, str_of(v != NULL ? v : ""));
}

/* Numbers are packed: one field with all of them. */
static void add_packed(struct buf *out, const char *key, char list_tag, struct str packed)
{
    add_entry(out, key, list_tag, field_n(packed.n));
    add_field(out, TAG_FIRST, packed);
}

static void pack_float(struct buf *out, double d)
{
    float f = (float)d;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    add_le(out, bits, 4);
}

static void add_int(struct buf *out, const char *key, int64_t v)
{
    AUTO_BUF struct buf packed = BUF_INIT(10);
    add_varint(&packed, (uint64_t)v);
    add_packed(out, key, TAG_INT64_LIST, buf_str(&packed));
}

static void add_float(struct buf *out, const char *key, double v)
{
    AUTO_BUF struct buf packed = BUF_INIT(4);
    pack_float(&packed, v);
    add_packed(out, key, TAG_FLOAT_LIST, buf_str(&packed));
}

/* Append an element of a list to the list's content, after its first element's kind. */
static bool add_element(struct buf *out, const json_t *first, const json_t *v)
{
    if (json_is_integer(first) || json_is_boolean(first)) {
        add_varint(out, json_is_integer(v) ? (uint64_t)json_integer_value(v)
                                           : (uint64_t)(json_is_true(v) ? 1 : 0));
        return json_is_integer(v) || json_is_boolean(v);
    }
    if (json_is_real(first)) {
        pack_float(out, json_number_value(v));
        return json_is_number(v);
    }
    struct str text = {json_string_value(v), json_string_length(v)};
    add_field(out, TAG_FIRST, json_is_string(v) ? text : STR(""));
    return json_is_string(v) || json_is_null(v);
}

/* False: it is not a list of plain values of one kind. */
static bool add_list(struct buf *out, const char *key, struct str text)
{
    AUTO_JSON json_t *list = NULL;
    AUTO_BUF struct buf content = BUF_INIT(EXAMPLE_BYTES_MAX);
    if (!json_parse(text, text.n, &list, NULL) || !json_is_array(list)) {
        return false;
    }
    size_t n = json_array_size(list);
    const json_t *first = json_array_get(list, 0);
    bool texts = json_is_string(first) || json_is_null(first);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        ok = add_element(&content, first, json_array_get(list, i));
    }
    if (!ok) {
        return false;
    }
    if (n == 0) {
        struct str k = str_of(key);
        add_head(out, TAG_FIRST, field_n(k.n) + field_n(0));
        add_field(out, TAG_FIRST, k);
        add_head(out, TAG_VALUE, 0);
    } else if (texts) {
        add_entry(out, key, TAG_BYTES_LIST, content.n);
        buf_add_str(out, buf_str(&content));
    } else {
        add_packed(out, key, json_is_real(first) ? TAG_FLOAT_LIST : TAG_INT64_LIST,
                   buf_str(&content));
    }
    return true;
}

static void add_cell(struct buf *out, const char *key, const struct cell *c)
{
    char text[24];
    switch (c->kind) {
    case CELL_NULL:
        add_bytes(out, key, STR(""));
        break;
    case CELL_BOOL:
        add_int(out, key, c->b ? 1 : 0);
        break;
    case CELL_INT:
        add_int(out, key, c->i);
        break;
    case CELL_UINT:
        if (c->u <= INT64_MAX) {
            add_int(out, key, (int64_t)c->u);
        } else { /* no int64 */
            (void)snprintf(text, sizeof text, "%" PRIu64, c->u);
            add_text(out, key, text);
        }
        break;
    case CELL_FLOAT:
    case CELL_DOUBLE:
        add_float(out, key, c->d);
        break;
    case CELL_TEXT:
        add_bytes(out, key, c->s);
        break;
    case CELL_JSON:
        if (!add_list(out, key, c->s)) {
            add_bytes(out, key, c->s);
        }
        break;
    }
}

static void add_side(struct buf *out, const char *key, int32_t v)
{
    if (v == 0) { /* kept unread */
        add_bytes(out, key, STR(""));
    } else {
        add_int(out, key, v);
    }
}

void tfrecord_add_sample(const struct tfrecord_crc *t, const struct shard_format *f,
                         const struct columns *columns, const struct sample *s, struct buf *out)
{
    char key[SHARD_KEY_BYTES];
    struct str caption;
    AUTO_BUF struct buf features = BUF_INIT(EXAMPLE_BYTES_MAX);
    AUTO_BUF struct buf example = BUF_INIT(EXAMPLE_BYTES_MAX);
    shard_key(f, s->shard_i, s->row_i, key);
    add_text(&features, "key", key);
    add_bytes(&features, shard_image_suffix(f->image),
              (struct str){(const char *)s->image, s->image_n});
    if (shard_caption(columns, s, &caption)) {
        add_bytes(&features, "txt", caption);
    }
    for (int i = 0; i < columns->n; i++) {
        add_cell(&features, columns->at[i].name, &s->cells[i]);
    }
    add_text(&features, "status", stats_status_name(s->status));
    add_text(&features, "error_message", s->error);
    add_side(&features, "width", s->width);
    add_side(&features, "height", s->height);
    add_side(&features, "original_width", s->original_width);
    add_side(&features, "original_height", s->original_height);
    if (f->exif) {
        add_text(&features, "exif", s->exif);
    }
    const char *hash = shard_hash_name(f->hash);
    if (hash != NULL) {
        add_text(&features, hash, s->hash);
    }
    add_field(&example, TAG_FIRST, buf_str(&features));
    out->overflow = out->overflow || example.overflow || features.overflow;
    tfrecord_add(t, out, buf_str(&example));
}
