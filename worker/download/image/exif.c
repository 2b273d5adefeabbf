/* EXIF over libexif, which reads both a JPEG and a bare EXIF block; a WebP's is extracted first. */
#include "exif.h"
#include "common/json.h"
#include "image.h"
#include <libexif/exif-data.h>

#define VALUE_BYTES_MAX 512
#define TAGS_MAX        512
#define BLOCK_BYTES_MAX (1u << 20)

struct walk {
    struct buf *out;
    const char *group;
    int n;
};

static const char *group_name(ExifIfd ifd)
{
    switch (ifd) {
    case EXIF_IFD_0:
        return "Image";
    case EXIF_IFD_1:
        return "Thumbnail";
    case EXIF_IFD_EXIF:
        return "EXIF";
    case EXIF_IFD_GPS:
        return "GPS";
    case EXIF_IFD_INTEROPERABILITY:
        return "Interoperability";
    case EXIF_IFD_COUNT:
        break;
    }
    return "?";
}

/* Camera texts are in any encoding: what is not UTF-8 is shown as '?'. */
static void clean(char *s)
{
    if (!str_is_utf8(str_of(s))) {
        for (; *s != '\0'; s++) {
            *s = (unsigned char)*s >= 0x80 ? '?' : *s;
        }
    }
}

static void one_entry(ExifEntry *e, void *ctx)
{
    struct walk *w = ctx;
    char value[VALUE_BYTES_MAX] = "";
    ExifIfd ifd = exif_entry_get_ifd(e);
    const char *name = exif_tag_get_name_in_ifd(e->tag, ifd);
    if (name == NULL || ifd == EXIF_IFD_COUNT || w->n >= TAGS_MAX ||
        exif_entry_get_value(e, value, sizeof value) == NULL) {
        return;
    }
    value[sizeof value - 1] = '\0';
    clean(value);
    AUTO_BUF struct buf one = BUF_INIT(8 * VALUE_BYTES_MAX);
    buf_addf(&one, "%s\"%s %s\": ", w->n > 0 ? ", " : "", group_name(ifd), name);
    json_escape(&one, str_trim(str_of(value)), true);
    if (!one.overflow && w->out->n + one.n + 1 < IMAGE_EXIF_BYTES_MAX) {
        buf_add_str(w->out, buf_str(&one));
        w->n++;
    }
}

static void one_content(ExifContent *c, void *ctx)
{
    exif_content_foreach_entry(c, one_entry, ctx);
}

static uint32_t le32(const char *p)
{
    const uint8_t *u = (const uint8_t *)p;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

/* The EXIF chunk of a WebP with the header libexif expects; false when there is none. */
static bool webp_block(struct str body, struct buf *out)
{
    size_t i = 12;
    while (i + 8 <= body.n) {
        size_t n = le32(body.p + i + 4);
        if (n > body.n - i - 8) {
            return false;
        }
        if (memcmp(body.p + i, "EXIF", 4) == 0) {
            struct str data = {body.p + i + 8, n};
            if (!str_starts(data, "Exif")) {
                buf_add(out, "Exif\0\0", 6);
            }
            buf_add_str(out, data);
            return !out->overflow;
        }
        i += 8 + n + (n & 1);
    }
    return false;
}

/* libexif's view of a body; NULL: none. block keeps what it may point to. */
static ExifData *load(struct str body, struct buf *block)
{
    enum image_format f = image_sniff(body);
    if (f == IMAGE_WEBP && webp_block(body, block)) {
        body = buf_str(block);
    } else if (f != IMAGE_JPEG) {
        return NULL;
    }
    return exif_data_new_from_data((const unsigned char *)body.p, (unsigned)body.n);
}

int exif_orientation(struct str body)
{
    AUTO_BUF struct buf block = BUF_INIT(BLOCK_BYTES_MAX);
    ExifData *d = load(body, &block);
    int turned = 1;
    if (d != NULL) {
        ExifEntry *e = exif_content_get_entry(d->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
        if (e != NULL && e->format == EXIF_FORMAT_SHORT && e->size >= 2) {
            turned = exif_get_short(e->data, exif_data_get_byte_order(d));
        }
        exif_data_unref(d);
    }
    return turned >= 1 && turned <= 8 ? turned : 1;
}

void exif_json(struct str body, struct buf *out)
{
    AUTO_BUF struct buf block = BUF_INIT(BLOCK_BYTES_MAX);
    struct walk w = {.out = out};
    ExifData *d = load(body, &block);
    buf_add_char(out, '{');
    if (d != NULL) {
        exif_data_foreach_content(d, one_content, &w);
        exif_data_unref(d);
    }
    buf_add_char(out, '}');
}
