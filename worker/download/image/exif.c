/* Where a file keeps its EXIF block, and the block's tags as JSON. */
#include "exif.h"
#include "common/json.h"
#include "exif_block.h"
#include "image.h"

static size_t be(const char *p, int n)
{
    size_t v = 0;
    for (int i = 0; i < n; i++) {
        v = v << 8 | (uint8_t)p[i];
    }
    return v;
}

static size_t le32(const char *p)
{
    const uint8_t *u = (const uint8_t *)p;
    return (size_t)u[0] | (size_t)u[1] << 8 | (size_t)u[2] << 16 | (size_t)u[3] << 24;
}

static struct str from(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

/* Segments up to the one of that name or the first table of quantisation. Offsets in the block may
 * point beyond its segment, and exifread follows them. */
static struct str jpeg_block(struct str body)
{
    for (size_t i = 2; i + 10 <= body.n && body.p[i] == '\xff' && body.p[i + 1] != '\xdb';) {
        if (body.p[i + 1] == '\xe1' && memcmp(body.p + i + 4, "Exif", 4) == 0) {
            return from(body, i + 10);
        }
        i += 2 + be(body.p + i + 2, 2);
    }
    return (struct str){"", 0};
}

static struct str png_block(struct str body)
{
    for (size_t i = 8; i + 8 <= body.n && memcmp(body.p + i + 4, "IEND", 4) != 0;) {
        size_t n = be(body.p + i, 4);
        if (memcmp(body.p + i + 4, "eXIf", 4) == 0) {
            return from(body, i + 8);
        }
        i += 12 + n;
    }
    return (struct str){"", 0};
}

static struct str webp_block(struct str body)
{
    for (size_t i = 12; i + 8 <= body.n;) {
        size_t n = le32(body.p + i + 4);
        if (memcmp(body.p + i, "EXIF", 4) == 0) {
            struct str block = from(body, i + 8);
            return block.n >= 6 && memcmp(block.p, "Exif\0", 6) == 0 ? from(block, 6) : block;
        }
        i += 8 + n + (n & 1);
    }
    return (struct str){"", 0};
}

static struct str find(struct str body)
{
    switch (image_sniff(body)) {
    case IMAGE_JPEG:
        return jpeg_block(body);
    case IMAGE_PNG:
        return png_block(body);
    case IMAGE_WEBP:
        return webp_block(body);
    case IMAGE_AVIF:
    case IMAGE_GIF:
    case IMAGE_TIFF:
    case IMAGE_UNKNOWN:
        break;
    }
    return (struct str){"", 0};
}

int exif_orientation(struct str body)
{
    struct exif_block b;
    int64_t turned;
    exif_block_read(find(body), &b);
    for (int i = 0; i < b.n; i++) {
        const struct exif_entry *e = &b.tags[i];
        if (e->is_image && e->tag == 0x0112 && exif_block_number(&b, e, 0, &turned)) {
            return turned >= 1 && turned <= 8 ? (int)turned : 1;
        }
    }
    return 1;
}

void exif_json(struct str body, struct buf *out)
{
    AUTO_BUF struct buf value = BUF_INIT(2 * EXIF_VALUE_BYTES_MAX);
    AUTO_BUF struct buf one = BUF_INIT(IMAGE_EXIF_BYTES_MAX);
    struct exif_block b;
    bool first = true;
    exif_block_read(find(body), &b);
    buf_add_char(out, '{');
    for (int i = 0; i < b.n; i++) {
        buf_reset(&value);
        buf_reset(&one);
        exif_block_value(&b, &b.tags[i], &value);
        buf_addf(&one, "%s\"%s\": ", first ? "" : ", ", b.tags[i].name);
        json_escape(&one, str_trim(buf_str(&value)), true);
        if (!one.overflow && out->n + one.n + 1 < IMAGE_EXIF_BYTES_MAX) {
            buf_add_str(out, buf_str(&one));
            first = false;
        }
    }
    buf_add_char(out, '}');
}
