/* EXIF blocks of strangers: as a bare block and inside a JPEG, PNG or WebP. The column is JSON
 * without a name twice, bounded, and the orientation one of eight. */
#include "download/image/exif.h"
#include "download/image/exif_block.h"
#include "download/image/image.h"
#include "fuzz.h"
#include <jansson.h>

static void check_values(struct str data)
{
    static struct exif_block b;
    exif_block_read(data, &b);
    ASSERT(b.n >= 0 && b.n <= EXIF_TAGS_MAX);
    for (int i = 0; i < b.n; i++) {
        struct buf value = BUF_INIT(2 * EXIF_VALUE_BYTES_MAX);
        exif_block_value(&b, &b.tags[i], &value);
        ASSERT(!value.overflow && str_is_utf8(buf_str(&value)));
        buf_done(&value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    struct buf out = BUF_INIT(IMAGE_EXIF_BYTES_MAX);
    check_values(body);
    int turned = exif_orientation(body);
    ASSERT(turned >= 1 && turned <= 8);
    exif_json(body, &out);
    ASSERT(!out.overflow);
    json_t *tags = json_loadb(out.p, out.n, JSON_REJECT_DUPLICATES, NULL);
    ASSERT(json_is_object(tags) && json_object_size(tags) <= EXIF_TAGS_MAX);
    json_decref(tags);
    buf_done(&out);
    return 0;
}
