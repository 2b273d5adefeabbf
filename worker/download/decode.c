/* The order is img2dataset's: decode, filters, resize, encode; exif and hash of the downloaded
 * bytes only for what succeeded. */
#include "decode.h"
#include "common/hash.h"
#include "exif.h"
#include "thumb.h"

static void hash_hex(struct str body, enum image_hash kind, char out[static 65])
{
    uint8_t sum[16];
    switch (kind) {
    case HASH_NONE:
        out[0] = '\0';
        break;
    case HASH_SHA256:
        hash_sha256_hex(body.p, body.n, out);
        break;
    case HASH_MD5:
        hash_md5(body.p, body.n, sum);
        str_hex(sum, sizeof sum, out);
        break;
    }
}

void decode_one(struct str body, const struct image_options *o, struct decoded *ret)
{
    struct thumb t;
    buf_reset(&ret->image);
    buf_reset(&ret->exif);
    ret->hash[0] = '\0';
    thumb_init(&t, o, o->orient ? exif_orientation(body) : 1);
    enum image_result result =
        image_read(body, &t.rows, &ret->original_width, &ret->original_height);
    if (result == IMAGE_OK) {
        thumb_finish(&t);
        ret->width = t.out.w;
        ret->height = t.out.h;
        if (t.turned >= 5) {
            int w = ret->original_width;
            ret->original_width = ret->original_height;
            ret->original_height = w;
        }
        result = image_encode(&t.out, o, &ret->image);
    } else if (t.w != 0) {
        result = t.result; /* why the rows were not wanted, or IMAGE_BAD */
    }
    ret->result = result;
    if (result == IMAGE_OK) {
        hash_hex(body, o->hash, ret->hash);
        if (o->exif) {
            exif_json(body, &ret->exif);
        }
    }
    thumb_done(&t);
}
