/* The order is img2dataset's: decode, filters, resize, encode; exif and hash of the downloaded
 * bytes only for what succeeded. */
#include "decode.h"
#include "common/hash.h"
#include "exif.h"

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
    struct image im = {0};
    buf_reset(&ret->image);
    buf_reset(&ret->exif);
    ret->hash[0] = '\0';
    ret->result = image_decode(body, &im);
    if (ret->result == IMAGE_OK) {
        ret->original_width = im.w;
        ret->original_height = im.h;
        ret->result = image_filter(&im, o);
    }
    if (ret->result == IMAGE_OK) {
        ret->result = image_resize(&im, o);
    }
    if (ret->result == IMAGE_OK) {
        ret->width = im.w;
        ret->height = im.h;
        ret->result = image_encode(&im, o, &ret->image);
    }
    if (ret->result == IMAGE_OK) {
        hash_hex(body, o->hash, ret->hash);
        if (o->exif) {
            exif_json(body, &ret->exif);
        }
    }
    image_done(&im);
}
