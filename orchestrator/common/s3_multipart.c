/* Objects of unknown size, streamed in parts.
 *
 * The upload is created when a second part becomes necessary, so a small object is one plain PUT. A
 * full part stays in memory until more bytes come, so an object that ends at a part's end gets no
 * empty part. When the reply to Complete is lost, the object under the key is compared with what
 * our parts would make. */
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/xml.h"
#include "s3_internal.h"

#define S3_PART_BYTES_MIN    ((size_t)5 * 1024 * 1024)
#define S3_PARTS_MAX         ((size_t)10000)
#define S3_UPLOAD_ID_MAX     ((size_t)2048)
#define S3_COMPLETE_MAX      ((size_t)4 * 1024 * 1024)
#define S3_COMPLETE_STALL_US (INT64_C(600) * USEC_PER_SEC)

struct upload_part {
    char etag[128];
};

struct s3_multipart {
    struct s3_blocking *s;
    struct s3_uri u;
    char *content_type;
    char *upload_id; /* percent-encoded; NULL: not created yet */
    char *bytes;     /* the part being filled: bytes[part_bytes] */
    size_t bytes_n;
    size_t part_bytes;
    struct upload_part *parts; /* uploaded ones, in order */
    size_t parts_n, parts_cap;
    int64_t total;
};

bool s3_multipart_begin(struct s3_blocking *s, const struct s3_uri *u, const char *content_type,
                        size_t part_bytes, struct s3_multipart **ret, struct err *err)
{
    if (part_bytes < S3_PART_BYTES_MIN) {
        return err_set(err, ERR_INVALID, "a part of %zu bytes is smaller than S3 allows",
                       part_bytes);
    }
    struct s3_multipart *m = xcalloc(1, sizeof *m);
    *m = (struct s3_multipart){
        .s = s,
        .u = *u,
        .content_type = xstrdup(content_type != NULL ? content_type : "application/octet-stream"),
        .bytes = xmalloc(part_bytes),
        .part_bytes = part_bytes,
    };
    *ret = m;
    return true;
}

static void multipart_free(struct s3_multipart *m)
{
    free(m->content_type);
    free(m->upload_id);
    free(m->bytes);
    free(m->parts);
    free(m);
}

static bool create_upload(struct s3_multipart *m, struct err *err)
{
    struct s3_spec spec = {.operation = "CreateMultipartUpload",
                           .method = "POST",
                           .query = "uploads",
                           .content_type = m->content_type,
                           .xml_root = "InitiateMultipartUploadResult"};
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (!s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, err)) {
        return false;
    }
    AUTO_BUF struct buf id = BUF_INIT(S3_UPLOAD_ID_MAX);
    AUTO_BUF struct buf encoded = BUF_INIT(3 * S3_UPLOAD_ID_MAX);
    if (!xml_find(k.r.body, "UploadId", &id) || id.n == 0 || id.overflow) {
        return err_set(err, ERR_AWS, "CreateMultipartUpload: the answer has no upload id");
    }
    str_url_encode(&encoded, buf_str(&id), false);
    m->upload_id = buf_take(&encoded);
    return true;
}

static bool upload_part(struct s3_multipart *m, struct err *err)
{
    if (m->upload_id == NULL && !create_upload(m, err)) {
        return false;
    }
    if (m->parts_n == S3_PARTS_MAX) {
        return err_set(err, ERR_LIMIT, "'s3://%s/%.200s' needs more than %zu parts of %zu bytes",
                       m->u.bucket, m->u.key, S3_PARTS_MAX, m->part_bytes);
    }
    AUTO_FREE char *query = xasprintf("partNumber=%zu&uploadId=%s", m->parts_n + 1, m->upload_id);
    struct s3_spec spec = {.operation = "UploadPart",
                           .method = "PUT",
                           .query = query,
                           .content_type = "application/octet-stream",
                           .body = {m->bytes, m->bytes_n},
                           .body_borrow = true};
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (!s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, err)) {
        return false;
    }
    if (k.r.etag[0] == '\0') {
        return err_set(err, ERR_AWS, "UploadPart: the answer has no ETag");
    }
    ARRAY_ROOM(m->parts, m->parts_n, m->parts_cap);
    memcpy(m->parts[m->parts_n++].etag, k.r.etag, sizeof k.r.etag);
    m->bytes_n = 0;
    return true;
}

bool s3_multipart_add(struct s3_multipart *m, const void *p, size_t n, struct err *err)
{
    const char *from = p;
    while (n > 0) {
        if (m->bytes_n == m->part_bytes && !upload_part(m, err)) {
            return false;
        }
        size_t took = MIN(n, m->part_bytes - m->bytes_n);
        memcpy(m->bytes + m->bytes_n, from, took);
        m->bytes_n += took;
        m->total += (int64_t)took;
        from += took;
        n -= took;
    }
    return true;
}

void s3_multipart_abort(struct s3_multipart *m)
{
    if (m == NULL) {
        return;
    }
    if (m->upload_id != NULL) {
        AUTO_FREE char *query = xasprintf("uploadId=%s", m->upload_id);
        struct s3_spec spec = {
            .operation = "AbortMultipartUpload", .method = "DELETE", .query = query};
        CLEANUP(s3_kept_done)
        struct s3_kept k;
        /* An upload that cannot be aborted now is aborted later by s3_blocking_uploads_abort. */
        bool aborted = s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, NULL);
        (void)aborted;
    }
    multipart_free(m);
}

/* The ETag S3 makes of our parts: MD5 over their MD5s, "-", their number. False when the parts'
 * ETags are not MD5s (objects encrypted with KMS). */
static bool whole_etag(const struct s3_multipart *m, char out[static 128])
{
    AUTO_BUF struct buf sums = BUF_INIT(16 * S3_PARTS_MAX);
    for (size_t i = 0; i < m->parts_n; i++) {
        uint8_t md5[16];
        struct str etag = str_of(m->parts[i].etag);
        if (etag.n != 34 || etag.p[0] != '"' ||
            !str_unhex((struct str){etag.p + 1, 32}, md5, sizeof md5)) {
            return false;
        }
        buf_add(&sums, md5, sizeof md5);
    }
    uint8_t md5[16];
    char hex[33];
    hash_md5(sums.p, sums.n, md5);
    str_hex(md5, sizeof md5, hex);
    (void)snprintf(out, 128, "\"%s-%zu\"", hex, m->parts_n);
    return true;
}

static bool complete(struct s3_multipart *m, bool create_only, struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT(S3_COMPLETE_MAX);
    buf_add_cstr(&body, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < m->parts_n; i++) {
        buf_addf(&body, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
        xml_escape(&body, str_of(m->parts[i].etag));
        buf_add_cstr(&body, "</ETag></Part>");
    }
    buf_add_cstr(&body, "</CompleteMultipartUpload>");
    ASSERT(!body.overflow);
    AUTO_FREE char *query = xasprintf("uploadId=%s", m->upload_id);
    struct s3_spec spec = {.operation = "CompleteMultipartUpload",
                           .method = "POST",
                           .query = query,
                           .content_type = "application/xml",
                           .body = buf_str(&body),
                           .body_borrow = true,
                           .stall_timeout_us = S3_COMPLETE_STALL_US,
                           .xml_root = "CompleteMultipartUploadResult"};
    if (create_only) {
        s3_spec_header(&spec, "If-None-Match", "*");
    }
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, err)) {
        return true;
    }
    char etag[128];
    bool perhaps = k.unknown_n > 0 || k.r.outcome == AWS_UNKNOWN;
    if (perhaps && whole_etag(m, etag) && s3_sync_is_ours(m->s, &m->u, etag, m->total)) {
        err_clear(err);
        return true;
    }
    return false;
}

bool s3_multipart_finish(struct s3_multipart *m, bool create_only, int64_t *ret_size,
                         struct err *err)
{
    bool ok;
    if (m->upload_id == NULL && m->parts_n == 0) {
        ok = s3_blocking_put(m->s, &m->u, (struct str){m->bytes, m->bytes_n}, m->content_type,
                             create_only, err);
    } else {
        ok = upload_part(m, err) && complete(m, create_only, err);
    }
    if (!ok) {
        s3_multipart_abort(m);
        return false;
    }
    *ret_size = m->total;
    multipart_free(m);
    return true;
}

void s3_multipart_save(const struct s3_multipart *m, struct json_out *w, struct buf *tail)
{
    json_out_str(w, "upload_id", m->upload_id != NULL ? m->upload_id : "");
    json_out_array(w, "etags");
    for (size_t i = 0; i < m->parts_n; i++) {
        json_out_str(w, NULL, m->parts[i].etag);
    }
    json_out_end_array(w);
    json_out_i64(w, "tail", (int64_t)m->bytes_n);
    buf_add(tail, m->bytes, m->bytes_n);
}

void s3_multipart_leave(struct s3_multipart *m)
{
    multipart_free(m);
}

static bool take_etags(struct s3_multipart *m, const json_t *etags, struct err *err)
{
    size_t n = json_array_size(etags);
    if (n > S3_PARTS_MAX || (n > 0) != (m->upload_id != NULL)) {
        return err_set(err, ERR_MALFORMED, "an upload of %zu parts", n);
    }
    m->parts = xcalloc(n + 1, sizeof *m->parts);
    m->parts_cap = n + 1;
    for (; m->parts_n < n; m->parts_n++) {
        const char *etag = json_string_value(json_array_get(etags, m->parts_n));
        if (etag == NULL || etag[0] == '\0' || strlen(etag) >= sizeof m->parts[0].etag) {
            return err_set(err, ERR_MALFORMED, "part %zu has no etag", m->parts_n + 1);
        }
        memcpy(m->parts[m->parts_n].etag, etag, strlen(etag) + 1);
    }
    return true;
}

/* Parts exist as long as their upload does. */
static bool upload_is_there(struct s3_multipart *m, struct err *err)
{
    if (m->upload_id == NULL) {
        return true;
    }
    AUTO_FREE char *query = xasprintf("max-parts=1&uploadId=%s", m->upload_id);
    struct s3_spec spec = {
        .operation = "ListParts", .method = "GET", .query = query, .xml_root = "ListPartsResult"};
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    return s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, err);
}

bool s3_multipart_restore(struct s3_blocking *s, const struct s3_uri *u, const char *content_type,
                          size_t part_bytes, const json_t *o, struct str *tail,
                          struct s3_multipart **ret, struct err *err)
{
    struct s3_multipart *m;
    const char *upload_id;
    json_t *etags;
    int64_t tail_n;
    if (!json_get_str(o, "upload_id", "", &upload_id, err) ||
        !json_get_array(o, "etags", &etags, err) ||
        !json_get_i64(o, "tail", 0, (int64_t)MIN(part_bytes, tail->n), JSON_ABSENT, &tail_n, err) ||
        !s3_multipart_begin(s, u, content_type, part_bytes, &m, err)) {
        return false;
    }
    m->upload_id = upload_id[0] != '\0' ? xstrdup(upload_id) : NULL;
    if (!take_etags(m, etags, err) || !upload_is_there(m, err)) {
        multipart_free(m);
        return false;
    }
    m->bytes_n = (size_t)tail_n;
    memcpy(m->bytes, tail->p, m->bytes_n);
    *tail = (struct str){tail->p + m->bytes_n, tail->n - m->bytes_n};
    m->total = (int64_t)(m->parts_n * part_bytes + m->bytes_n);
    *ret = m;
    return true;
}
