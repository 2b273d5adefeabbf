/* The json is byte for byte what Python's json.dumps writes. */
#include "shard.h"
#include "common/json.h"
#include "common/tar.h"
#include <inttypes.h>

#define JSON_MEMBER_BYTES_MAX (128u << 20)

int shard_row_digits(int64_t rows_per_shard)
{
    ASSERT(rows_per_shard > 0);
    int d = 0;
    for (int64_t n = 1; n < rows_per_shard; n *= 10) {
        d++;
    }
    return d;
}

void shard_key(const struct shard_format *f, int64_t shard_i, int64_t row_i,
               char out[static SHARD_KEY_BYTES])
{
    int d = shard_row_digits(f->rows_per_shard);
    int64_t scale = 1;
    for (int i = 0; i < d; i++) {
        scale *= 10;
    }
    (void)snprintf(out, SHARD_KEY_BYTES, "%0*" PRIi64, f->digits + d,
                   scale * (f->first_shard + shard_i) + row_i);
}

void shard_name(const struct shard_format *f, int64_t shard_i, const char *suffix,
                char out[static SHARD_KEY_BYTES])
{
    (void)snprintf(out, SHARD_KEY_BYTES, "%0*" PRIi64 "%s", f->digits, f->first_shard + shard_i,
                   suffix);
}

int64_t shard_parse_name(const struct shard_format *f, const char *name, const char *suffix)
{
    size_t n = strspn(name, "0123456789");
    int64_t i;
    char again[SHARD_KEY_BYTES];
    if (strcmp(name + n, suffix) != 0 ||
        !parse_i64((struct str){name, n}, 0, INT64_MAX / 2, &i, NULL)) {
        return -1;
    }
    i -= f->first_shard;
    if (i < 0) {
        return -1;
    }
    shard_name(f, i, suffix, again);
    return strcmp(again, name) == 0 ? i : -1;
}

const char *shard_image_suffix(enum image_format f)
{
    switch (f) {
    case IMAGE_JPEG:
        return "jpg";
    case IMAGE_PNG:
        return "png";
    case IMAGE_WEBP:
        return "webp";
    case IMAGE_AVIF:
    case IMAGE_GIF:
    case IMAGE_TIFF:
    case IMAGE_UNKNOWN:
        break;
    }
    return "bin";
}

const char *shard_hash_name(enum image_hash h)
{
    switch (h) {
    case HASH_NONE:
        break;
    case HASH_SHA256:
        return "sha256";
    case HASH_MD5:
        return "md5";
    case HASH_SHA512:
        return "sha512";
    }
    return NULL;
}

/* JSON with non-ASCII characters escaped. */
static void ascii_json(struct buf *out, struct str s)
{
    AUTO_BUF struct buf escaped = BUF_INIT(JSON_MEMBER_BYTES_MAX);
    for (size_t i = 0; i < s.n;) {
        size_t n = 1;
        bool ascii = (unsigned char)s.p[i] < 0x80;
        while (i + n < s.n && ((unsigned char)s.p[i + n] < 0x80) == ascii) {
            n++;
        }
        if (ascii) {
            buf_add(out, s.p + i, n);
        } else {
            buf_reset(&escaped);
            json_escape(&escaped, (struct str){s.p + i, n}, true);
            buf_add(out, escaped.p + 1, escaped.n - 2); /* without its quotes */
        }
        i += n;
    }
}

static void cell(struct buf *out, const struct cell *c)
{
    switch (c->kind) {
    case CELL_NULL:
        buf_add_cstr(out, "null");
        break;
    case CELL_BOOL:
        buf_add_cstr(out, c->b ? "true" : "false");
        break;
    case CELL_INT:
        buf_addf(out, "%" PRIi64, c->i);
        break;
    case CELL_UINT:
        buf_addf(out, "%" PRIu64, c->u);
        break;
    case CELL_FLOAT:
    case CELL_DOUBLE:
        json_python_float(out, c->d);
        break;
    case CELL_TEXT:
        json_escape(out, c->s, true);
        break;
    case CELL_JSON:
        ascii_json(out, c->s);
        break;
    }
}

static void name(struct buf *out, const char *key)
{
    buf_add_cstr(out, out->n == 0 ? "{\n    " : ",\n    ");
    json_escape(out, str_of(key), true);
    buf_add_cstr(out, ": ");
}

static void text(struct buf *out, const char *key, const char *v)
{
    name(out, key);
    if (v == NULL) {
        buf_add_cstr(out, "null");
    } else {
        json_escape(out, str_of(v), true);
    }
}

static void side(struct buf *out, const char *key, int32_t v)
{
    name(out, key);
    if (v == 0) { /* kept unread */
        buf_add_cstr(out, "null");
    } else {
        buf_addf(out, "%" PRIi32, v);
    }
}

void shard_json(const struct shard_format *f, const struct columns *columns, const struct sample *s,
                struct buf *out)
{
    char key[SHARD_KEY_BYTES];
    ASSERT(out->n == 0);
    for (int i = 0; i < columns->n; i++) {
        name(out, columns->at[i].name);
        cell(out, &s->cells[i]);
    }
    shard_key(f, s->shard_i, s->row_i, key);
    text(out, "key", key);
    text(out, "status", stats_status_name(s->status));
    text(out, "error_message", s->error[0] != '\0' ? s->error : NULL);
    side(out, "width", s->width);
    side(out, "height", s->height);
    side(out, "original_width", s->original_width);
    side(out, "original_height", s->original_height);
    if (f->exif) {
        text(out, "exif", s->exif);
    }
    const char *hash = shard_hash_name(f->hash);
    if (hash != NULL) {
        text(out, hash, s->hash);
    }
    buf_add_cstr(out, "\n}");
}

bool shard_caption(const struct columns *columns, const struct sample *s, struct str *ret)
{
    if (columns->caption_i < 0) {
        return false;
    }
    const struct cell *c = &s->cells[columns->caption_i];
    *ret = c->kind == CELL_TEXT ? c->s : STR("");
    return true;
}

void shard_add_sample(const struct shard_format *f, const struct columns *columns,
                      const struct sample *s, int64_t mtime_s, struct buf *tar)
{
    char key[SHARD_KEY_BYTES];
    char member[SHARD_KEY_BYTES + 8];
    AUTO_BUF struct buf json = BUF_INIT(JSON_MEMBER_BYTES_MAX);
    shard_key(f, s->shard_i, s->row_i, key);
    shard_json(f, columns, s, &json);
    struct str image = {(const char *)s->image, s->image_n};
    bool image_first = f->image == IMAGE_JPEG; /* jpg < json < png < txt < webp */
    (void)snprintf(member, sizeof member, "%s.%s", key, shard_image_suffix(f->image));
    if (image_first) {
        tar_add(tar, str_of(member), image, mtime_s);
    }
    (void)snprintf(member, sizeof member, "%s.json", key);
    tar_add(tar, str_of(member), buf_str(&json), mtime_s);
    if (f->image == IMAGE_PNG) {
        (void)snprintf(member, sizeof member, "%s.png", key);
        tar_add(tar, str_of(member), image, mtime_s);
    }
    struct str caption;
    if (shard_caption(columns, s, &caption)) {
        (void)snprintf(member, sizeof member, "%s.txt", key);
        tar_add(tar, str_of(member), caption, mtime_s);
    }
    if (f->image == IMAGE_WEBP) {
        (void)snprintf(member, sizeof member, "%s.webp", key);
        tar_add(tar, str_of(member), image, mtime_s);
    }
}
