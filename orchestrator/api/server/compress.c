/* See compress.h. */
#include "compress.h"
#include "reply.h"
#include <zlib.h>

#define WORTH_BYTES 1400 /* what one packet takes */
#define GZIP_BITS   (MAX_WBITS + 16)

/* "gzip;q=0.5" */
static bool takes_gzip(struct str one)
{
    struct str name = str_trim(str_split(&one, ';'));
    struct str weight = str_trim(one);
    bool never =
        str_starts(weight, "q=0") && strspn(weight.p + 3, ".0") >= weight.n - 3; /* q=0, q=0.000 */
    return !never && (str_ieq_cstr(name, "gzip") || str_eq_cstr(name, "*"));
}

bool accepts_gzip(const struct api_req *r)
{
    struct str rest = str_of(req_header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    while (rest.n > 0) {
        if (takes_gzip(str_split(&rest, ','))) {
            return true;
        }
    }
    return false;
}

/* Fails when the result is no smaller, which leaves *ret empty. */
static bool deflate_all(const struct buf *from, struct buf *ret)
{
    z_stream z = {.next_in = (Bytef *)from->p, .avail_in = (uInt)from->n};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    char *to = buf_reserve(ret, from->n);
    z.next_out = (Bytef *)to;
    z.avail_out = to != NULL ? (uInt)from->n : 0;
    bool ok = to != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (ok) {
        buf_commit(ret, z.total_out);
    }
    (void)deflateEnd(&z);
    return ok;
}

void compress_answer(struct api_req *r)
{
    if (r->out.n < WORTH_BYTES || r->fixed != NULL || r->stream != NULL) {
        return;
    }
    reply_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    struct buf packed = BUF_INIT(API_ANSWER_MAX);
    if (accepts_gzip(r) && deflate_all(&r->out, &packed)) {
        buf_done(&r->out);
        r->out = packed;
        reply_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    } else {
        buf_done(&packed);
    }
}
