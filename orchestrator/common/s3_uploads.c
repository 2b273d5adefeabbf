/* Aborts abandoned multipart uploads. A killed writer leaves one, and so does a
 * CreateMultipartUpload whose reply was lost. Their parts are billed until they are aborted.
 *
 * The first page is requested until it holds none of our uploads: aborted uploads are no longer
 * listed, so no markers are needed. */
#include "common/cleanup.h"
#include "common/xml.h"
#include "s3_internal.h"

#define UPLOADS_ROUNDS_MAX 1000 /* pages of at most 1000 */
#define UPLOAD_ID_MAX      ((size_t)2048)
#define UPLOAD_KEY_MAX     ((size_t)3 * 1024)

struct uploads_page {
    struct s3_blocking *s;
    const struct s3_uri *prefix;
    bool (*ours)(void *ctx, const char *name);
    void *ctx;
    bool url_encoded;
    struct buf key, id; /* of the <Upload> being read */
    int64_t aborted_n;
};

static void page_done(struct uploads_page *p)
{
    buf_done(&p->key);
    buf_done(&p->id);
}

static bool abort_one(struct uploads_page *p, struct str key, struct err *err)
{
    struct s3_uri u = *p->prefix;
    AUTO_BUF struct buf query = BUF_INIT(3 * UPLOAD_ID_MAX + 16);
    ASSERT(key.n < sizeof u.key);
    memcpy(u.key, key.p, key.n);
    u.key[key.n] = '\0';
    buf_add_cstr(&query, "uploadId=");
    str_url_encode(&query, buf_str(&p->id), false);
    struct s3_spec spec = {
        .operation = "AbortMultipartUpload", .method = "DELETE", .query = buf_cstr(&query)};
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (!s3_sync_call(p->s, &u, &spec, NULL, NULL, &k, err) && k.r.status != 404) {
        return false;
    }
    p->aborted_n++; /* 404: it no longer exists */
    return true;
}

/* An <Upload> has been read: abort it when it is ours. */
static bool take_upload(struct uploads_page *p, struct err *err)
{
    AUTO_BUF struct buf decoded = BUF_INIT(sizeof p->prefix->key);
    struct str key = buf_str(&p->key);
    size_t skip = strlen(p->prefix->key);
    if (p->url_encoded) {
        if (!str_url_decode(&decoded, key, true)) {
            return err_set(err, ERR_AWS, "ListMultipartUploads: a key is not well encoded");
        }
        key = buf_str(&decoded);
    }
    if (p->id.n == 0 || p->id.overflow || p->key.overflow || decoded.overflow ||
        key.n >= sizeof p->prefix->key) {
        return err_set(err, ERR_AWS, "ListMultipartUploads: an upload without a name");
    }
    AUTO_FREE char *text = xstrndup(key.p, key.n);
    if (!str_starts(key, p->prefix->key) || !p->ours(p->ctx, text + skip)) {
        return true;
    }
    return abort_one(p, key, err);
}

static bool read_page(struct uploads_page *p, struct str body, struct err *err)
{
    struct xml x;
    struct str text;
    xml_init(&x, body);
    for (;;) {
        switch (xml_next(&x, &text)) {
        case XML_OPEN:
            if (x.depth == 2) {
                buf_reset(&p->key);
                buf_reset(&p->id);
            }
            break;
        case XML_TEXT:
            if (x.depth == 3 && str_eq_cstr(x.name[1], "Upload")) {
                if (str_eq_cstr(x.name[2], "Key")) {
                    xml_unescape(&p->key, text);
                } else if (str_eq_cstr(x.name[2], "UploadId")) {
                    xml_unescape(&p->id, text);
                }
            }
            break;
        case XML_CLOSE:
            if (str_eq_cstr(text, "Upload") && !take_upload(p, err)) {
                return false;
            }
            break;
        case XML_END:
            return true;
        case XML_ERROR:
            return err_set(err, ERR_AWS, "ListMultipartUploads: the answer is no XML document");
        }
    }
}

bool s3_blocking_uploads_abort(struct s3_blocking *s, const struct s3_uri *prefix,
                               bool (*ours)(void *ctx, const char *name), void *ctx, int64_t *ret_n,
                               struct err *err)
{
    CLEANUP(page_done)
    struct uploads_page p = {.s = s,
                             .prefix = prefix,
                             .ours = ours,
                             .ctx = ctx,
                             .key = BUF_INIT(UPLOAD_KEY_MAX),
                             .id = BUF_INIT(UPLOAD_ID_MAX)};
    AUTO_BUF struct buf query = BUF_INIT(S3_QUERY_BYTES_MAX);
    buf_add_cstr(&query, "uploads&delimiter=%2F&encoding-type=url&max-uploads=1000&prefix=");
    str_url_encode(&query, str_of(prefix->key), false);
    for (int round = 0; round < UPLOADS_ROUNDS_MAX; round++) {
        struct s3_spec spec = {.operation = "ListMultipartUploads",
                               .method = "GET",
                               .of_bucket = true,
                               .xml_root = "ListMultipartUploadsResult",
                               .query = buf_cstr(&query)};
        AUTO_BUF struct buf encoding = BUF_INIT(16);
        CLEANUP(s3_kept_done)
        struct s3_kept k;
        int64_t before = p.aborted_n;
        if (!s3_sync_call(s, prefix, &spec, NULL, NULL, &k, err)) {
            return false;
        }
        p.url_encoded = xml_find(k.r.body, "EncodingType", &encoding) &&
                        strcmp(buf_cstr(&encoding), "url") == 0;
        if (!read_page(&p, k.r.body, err)) {
            return false;
        }
        if (p.aborted_n == before) {
            *ret_n = p.aborted_n;
            return true;
        }
    }
    return err_set(err, ERR_AWS,
                   "ListMultipartUploads: uploads are listed after they were aborted");
}
