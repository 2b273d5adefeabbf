/* The order is img2dataset's: decode, filters, resize, encode; exif and hash of the downloaded
 * bytes only for what succeeded. */
#include "decode.h"
#include "download/image/exif.h"
#include "download/image/transform.h"
#include <openssl/evp.h>

void decode_hash(struct str body, enum image_hash kind, char out[static IMAGE_HASH_HEX_N])
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    const EVP_MD *md = kind == HASH_SHA256   ? EVP_sha256()
                       : kind == HASH_SHA512 ? EVP_sha512()
                       : kind == HASH_MD5    ? EVP_md5()
                                             : NULL;
    out[0] = '\0';
    if (md != NULL) {
        ASSERT(EVP_Digest(body.p, body.n, sum, &n, md, NULL) == 1 && 2 * n < IMAGE_HASH_HEX_N);
        str_hex(sum, n, out);
    }
}

static bool is_boxed(const struct bboxes *boxes)
{
    return boxes != NULL && boxes->n > 0;
}

/* True when the body already is the result: same format, same pixels. Never for a picture with
 * boxes, even if nothing was blurred: the body shows what must be hidden. */
static bool is_same(const struct transform *t, struct str body)
{
    return t->o->keep_same && !is_boxed(t->boxes) && t->turned == 1 && !t->rows.matted &&
           t->out.w == t->w && t->out.h == t->h && image_sniff(body) == t->o->format;
}

static enum image_result picture(struct str body, const struct bboxes *boxes,
                                 const struct image_options *o, struct decoded *ret)
{
    struct transform t;
    transform_init(&t, o, o->orient ? exif_orientation(body) : 1);
    t.boxes = boxes;
    enum image_result result =
        image_read(body, &t.rows, &ret->original_width, &ret->original_height);
    if (result == IMAGE_OK) {
        transform_finish(&t);
        result = t.result;
        ret->width = t.out.w;
        ret->height = t.out.h;
        if (t.turned >= 5) {
            int w = ret->original_width;
            ret->original_width = ret->original_height;
            ret->original_height = w;
        }
        if (result == IMAGE_OK && is_same(&t, body)) {
            buf_add_str(&ret->image, body);
        } else if (result == IMAGE_OK) {
            result = transform_encode(&t, &ret->image);
        }
    } else if (t.w != 0) {
        result = t.result; /* why the rows were not wanted, or IMAGE_BAD */
    }
    transform_done(&t);
    return result;
}

void decode_one(struct str body, const struct bboxes *boxes, const struct image_options *o,
                struct decoded *ret)
{
    buf_reset(&ret->image);
    buf_reset(&ret->exif);
    ret->hash[0] = '\0';
    ret->width = ret->height = ret->original_width = ret->original_height = 0;
    if (o->keep_all && !is_boxed(boxes)) {
        buf_add_str(&ret->image, body);
        ret->result = IMAGE_OK;
    } else {
        ret->result = picture(body, boxes, o, ret);
    }
    if (ret->result == IMAGE_OK) {
        decode_hash(body, o->hash, ret->hash);
        if (o->exif) {
            exif_json(body, &ret->exif);
        }
    }
}
