/* Objects of unknown size, streamed in parts.
 *
 * The upload is created when a second part becomes necessary, so a small object is one plain PUT. A
 * full part stays in memory until more bytes come, so an object that ends at a part's end gets no
 * empty part. When the reply to Complete is lost, the object under the key is ours when it has the
 * id that the upload was created with. */
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/xml.h"
#include "s3_internal.h"

#define S3_PART_BYTES_MIN    ((size_t)5 * 1024 * 1024)
#define S3_PARTS_STEP        49 /* parts after which they grow by another part_bytes */
#define S3_UPLOAD_ID_MAX     ((size_t)2048)
#define S3_COMPLETE_MAX      ((size_t)16 * 1024 * 1024)
#define S3_COMPLETE_STALL_US (INT64_C(600) * USEC_PER_SEC)

struct upload_part {
    char etag[128];
    char sha256[SHA256_HEX_N]; /* "": S3 did not tell that it has one */
};

struct s3_multipart {
    struct s3_blocking *s;
    struct s3_uri u;
    char *content_type;
    char *upload_id; /* percent-encoded; NULL: not created yet */
    char *bytes;     /* the part being filled: bytes[part_bytes] */
    size_t bytes_n;
    size_t part_bytes, first_bytes; /* of this part, and of the first ones */
    struct upload_part *parts;      /* uploaded ones, in order */
    size_t parts_n, parts_cap;
    int64_t total;
    char writer[S3_WRITER_N]; /* "": of an upload that has none */
    bool checksums;           /* the upload was created with an algorithm */
    uint64_t crc64nvme;       /* of the uploaded parts, when it was not ... */
    bool crc_known;           /* ... and all of them passed through a release that reckons it */
};

/* 16.8 GB of parts of 8 MiB, then linear: 5 TiB, the largest object, in 10,000 parts. */
size_t s3_multipart_part_bytes(size_t part_bytes, size_t i)
{
    return i < S3_PARTS_SAME ? part_bytes : part_bytes * (1 + (i - S3_PARTS_SAME) / S3_PARTS_STEP);
}

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
        .first_bytes = part_bytes,
        .checksums = s3_sync_checksums(s) != AWS_CHECKSUMS_OFF,
    };
    m->crc_known = !m->checksums;
    s3_writer_new(m->writer);
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
    s3_spec_header(&spec, S3_WRITER_HEADER, m->writer);
    s3_spec_encrypt(&spec, s3_sync_kms_key(m->s));
    if (m->checksums) {
        s3_spec_header(&spec, "x-amz-checksum-algorithm", "SHA256");
    }
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

/* The parts of an upload state checksums as it was created, whatever the setting is now. */
static enum aws_checksums part_checksums(const struct s3_multipart *m)
{
    enum aws_checksums how = s3_sync_checksums(m->s);
    if (!m->checksums) {
        return AWS_CHECKSUMS_OFF;
    }
    return how == AWS_CHECKSUMS_OFF ? AWS_CHECKSUMS_SENT : how;
}

static void part_room(struct s3_multipart *m)
{
    size_t n = s3_multipart_part_bytes(m->first_bytes, m->parts_n);
    if (n > m->part_bytes) {
        m->bytes = xrealloc(m->bytes, n);
        m->part_bytes = n;
    }
}

static bool upload_part(struct s3_multipart *m, struct err *err)
{
    if (m->upload_id == NULL && !create_upload(m, err)) {
        return false;
    }
    if (m->parts_n == S3_UPLOAD_PARTS_MAX) {
        return err_set(err, ERR_LIMIT, "'s3://%s/%.200s' needs more than %d parts", m->u.bucket,
                       m->u.key, S3_UPLOAD_PARTS_MAX);
    }
    AUTO_FREE char *query = xasprintf("partNumber=%zu&uploadId=%s", m->parts_n + 1, m->upload_id);
    struct s3_spec spec = {.operation = "UploadPart",
                           .method = "PUT",
                           .query = query,
                           .content_type = "application/octet-stream",
                           .body = {m->bytes, m->bytes_n},
                           .body_borrow = true};
    s3_spec_checksum(&spec, part_checksums(m));
    CLEANUP(s3_kept_done)
    struct s3_kept k;
    if (!s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, err)) {
        return false;
    }
    if (k.r.etag[0] == '\0') {
        return err_set(err, ERR_AWS, "UploadPart: the answer has no ETag");
    }
    ARRAY_ROOM(m->parts, m->parts_n, m->parts_cap);
    struct upload_part *p = &m->parts[m->parts_n++];
    *p = (struct upload_part){0};
    memcpy(p->etag, k.r.etag, sizeof k.r.etag);
    if (k.r.checksum[0] != '\0') {
        memcpy(p->sha256, spec.sha256, sizeof p->sha256);
    }
    if (m->crc_known) {
        m->crc64nvme = hash_crc64nvme(m->crc64nvme, m->bytes, m->bytes_n);
    }
    m->bytes_n = 0;
    part_room(m);
    return true;
}

int64_t s3_multipart_size(const struct s3_multipart *m)
{
    return m->total;
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
        struct s3_spec spec = {.operation = "AbortMultipartUpload",
                               .method = "DELETE",
                               .query = query,
                               .tidies = true};
        CLEANUP(s3_kept_done)
        struct s3_kept k;
        /* An upload that cannot be aborted now is aborted later by s3_blocking_uploads_abort. */
        bool aborted = s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, NULL);
        (void)aborted;
    }
    multipart_free(m);
}

static bool part_sha256(const struct upload_part *p, uint8_t out[static 32])
{
    return str_unhex(str_of(p->sha256), out, 32);
}

/* The checksum S3 makes of our parts: SHA-256 over theirs, "-", their number; "" when it has not
 * told theirs. */
static void composite_checksum(const struct s3_multipart *m, char out[static S3_CHECKSUM_N])
{
    struct sha256 h CLEANUP(sha256_done);
    uint8_t raw[32];
    out[0] = '\0';
    sha256_init(&h);
    for (size_t i = 0; i < m->parts_n; i++) {
        if (!part_sha256(&m->parts[i], raw)) {
            return;
        }
        sha256_add(&h, raw, sizeof raw);
    }
    sha256_end(&h, raw);
    AUTO_BUF struct buf text = BUF_INIT(S3_CHECKSUM_N);
    str_base64(&text, raw, sizeof raw);
    (void)snprintf(out, S3_CHECKSUM_N, "%s-%zu", buf_cstr(&text), m->parts_n);
}

static void complete_body(const struct s3_multipart *m, struct buf *body)
{
    uint8_t raw[32];
    buf_add_cstr(body, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < m->parts_n; i++) {
        buf_addf(body, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
        xml_escape(body, str_of(m->parts[i].etag));
        buf_add_cstr(body, "</ETag>");
        if (part_sha256(&m->parts[i], raw)) {
            buf_add_cstr(body, "<ChecksumSHA256>");
            str_base64(body, raw, sizeof raw);
            buf_add_cstr(body, "</ChecksumSHA256>");
        }
        buf_add_cstr(body, "</Part>");
    }
    buf_add_cstr(body, "</CompleteMultipartUpload>");
    ASSERT(!body->overflow);
}

/* The answer to Complete tells no other checksum than ours. */
static bool same_checksum(const struct s3_kept *k, const char *element, const char *ours)
{
    AUTO_BUF struct buf told = BUF_INIT(S3_CHECKSUM_N);
    return ours[0] == '\0' || !xml_find(k->r.body, element, &told) ||
           str_eq_cstr(buf_str(&told), ours);
}

static bool complete(struct s3_multipart *m, bool create_only, struct err *err)
{
    AUTO_BUF struct buf body = BUF_INIT(S3_COMPLETE_MAX);
    complete_body(m, &body);
    struct s3_write w = {.size = m->total, .create_only = create_only};
    memcpy(w.writer, m->writer, sizeof w.writer);
    composite_checksum(m, w.checksum);
    if (m->crc_known) {
        s3_crc64_text(m->crc64nvme, w.crc64nvme);
    }
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
    bool ok = s3_sync_call(m->s, &m->u, &spec, NULL, NULL, &k, err);
    if (ok && same_checksum(&k, "ChecksumSHA256", w.checksum) &&
        same_checksum(&k, "ChecksumCRC64NVME", w.crc64nvme)) {
        return true;
    }
    if (ok) {
        (void)err_set(err, ERR_AWS, "'s3://%s/%.200s' was stored with another checksum",
                      m->u.bucket, m->u.key);
    }
    bool perhaps = ok || k.unknown_n > 0 || k.r.outcome == AWS_UNKNOWN || k.r.status == 412 ||
                   k.r.status == 404;
    return perhaps && w.writer[0] != '\0' && s3_sync_is_ours(m->s, &m->u, &w, &k, err);
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
    json_out_array(w, "sha256");
    for (size_t i = 0; i < m->parts_n; i++) {
        json_out_str(w, NULL, m->parts[i].sha256);
    }
    json_out_end_array(w);
    json_out_str(w, "writer", m->writer);
    json_out_bool(w, "checksums", m->checksums);
    if (m->crc_known) {
        char crc[17];
        (void)snprintf(crc, sizeof crc, "%016jx", (uintmax_t)m->crc64nvme);
        json_out_str(w, "crc64nvme", crc);
    }
    json_out_i64(w, "bytes", m->total - (int64_t)m->bytes_n);
    json_out_i64(w, "tail", (int64_t)m->bytes_n);
    buf_add(tail, m->bytes, m->bytes_n);
}

void s3_multipart_leave(struct s3_multipart *m)
{
    multipart_free(m);
}

static bool take_text(const json_t *v, char *out, size_t out_n)
{
    const char *text = json_string_value(v);
    if (text == NULL || strlen(text) >= out_n) {
        return false;
    }
    memcpy(out, text, strlen(text) + 1);
    return true;
}

/* sums is NULL in what an earlier release saved. */
static bool take_parts(struct s3_multipart *m, const json_t *etags, const json_t *sums,
                       struct err *err)
{
    size_t n = json_array_size(etags);
    if (n > S3_UPLOAD_PARTS_MAX || (n > 0) != (m->upload_id != NULL) ||
        (sums != NULL && json_array_size(sums) != n)) {
        return err_set(err, ERR_MALFORMED, "an upload of %zu parts", n);
    }
    m->parts = xcalloc(n + 1, sizeof *m->parts);
    m->parts_cap = n + 1;
    for (; m->parts_n < n; m->parts_n++) {
        struct upload_part *p = &m->parts[m->parts_n];
        if (!take_text(json_array_get(etags, m->parts_n), p->etag, sizeof p->etag) ||
            p->etag[0] == '\0') {
            return err_set(err, ERR_MALFORMED, "part %zu has no etag", m->parts_n + 1);
        }
        if (sums != NULL &&
            !take_text(json_array_get(sums, m->parts_n), p->sha256, sizeof p->sha256)) {
            return err_set(err, ERR_MALFORMED, "part %zu has no checksum", m->parts_n + 1);
        }
    }
    return true;
}

/* An upload that an earlier release created has neither id nor algorithm. */
static bool take_writer(struct s3_multipart *m, const json_t *o, struct err *err)
{
    const char *writer;
    if (m->upload_id == NULL) { /* it has not been created */
        return true;
    }
    if (!json_get_str(o, "writer", "", &writer, err) ||
        !json_get_bool(o, "checksums", false, &m->checksums, err)) {
        return false;
    }
    if (strlen(writer) >= sizeof m->writer) {
        return err_set(err, ERR_MALFORMED, "a writer's id of %zu letters", strlen(writer));
    }
    memcpy(m->writer, writer, strlen(writer) + 1);
    return true;
}

/* Absent in what an earlier release saved. */
static bool take_crc(struct s3_multipart *m, const json_t *o, struct err *err)
{
    const char *crc;
    uint8_t raw[8];
    if (!json_get_str(o, "crc64nvme", "", &crc, err)) {
        return false;
    }
    m->crc_known = !m->checksums && (crc[0] != '\0' || m->upload_id == NULL);
    m->crc64nvme = 0;
    if (crc[0] != '\0' && !str_unhex(str_of(crc), raw, sizeof raw)) {
        return err_set(err, ERR_MALFORMED, "no checksum of parts: '%.20s'", crc);
    }
    for (size_t i = 0; crc[0] != '\0' && i < sizeof raw; i++) {
        m->crc64nvme = m->crc64nvme << 8 | raw[i];
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
    int64_t bytes; /* of the parts; an earlier release saved none: all its parts are equal */
    if (!json_get_str(o, "upload_id", "", &upload_id, err) ||
        !json_get_array(o, "etags", &etags, err) ||
        !json_get_i64(o, "tail", 0, (int64_t)tail->n, JSON_ABSENT, &tail_n, err) ||
        !json_get_i64(o, "bytes", 0, INT64_MAX / 2, -1, &bytes, err) ||
        !s3_multipart_begin(s, u, content_type, part_bytes, &m, err)) {
        return false;
    }
    m->upload_id = upload_id[0] != '\0' ? xstrdup(upload_id) : NULL;
    if (!take_parts(m, etags, json_object_get(o, "sha256"), err) || !take_writer(m, o, err) ||
        !take_crc(m, o, err) || !upload_is_there(m, err)) {
        multipart_free(m);
        return false;
    }
    part_room(m);
    if ((size_t)tail_n > m->part_bytes) {
        multipart_free(m);
        return err_set(err, ERR_MALFORMED, "a part of %jd bytes", (intmax_t)tail_n);
    }
    m->bytes_n = (size_t)tail_n;
    memcpy(m->bytes, tail->p, m->bytes_n);
    *tail = (struct str){tail->p + m->bytes_n, tail->n - m->bytes_n};
    m->total = (bytes >= 0 ? bytes : (int64_t)(m->parts_n * part_bytes)) + tail_n;
    *ret = m;
    return true;
}
