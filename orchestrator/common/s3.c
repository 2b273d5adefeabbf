/* S3 objects: addresses, single requests and their answers. */
#include "common/s3.h"
#include "aws_error.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/xml.h"
#include "s3_internal.h"
#include <ctype.h>

#define S3_BUCKET_MIN 3

static bool bucket_is_valid(struct str b)
{
    if (b.n < S3_BUCKET_MIN || b.n >= sizeof((struct s3_uri *)0)->bucket) {
        return false;
    }
    for (size_t i = 0; i < b.n; i++) {
        char c = b.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool inner = i > 0 && i + 1 < b.n && (c == '-' || (c == '.' && b.p[i - 1] != '.'));
        if (!letter && !inner) {
            return false;
        }
    }
    return true;
}

bool s3_parse_uri(struct str uri, struct s3_uri *ret, struct err *err)
{
    if (!str_starts(uri, "s3://")) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not an s3:// address",
                       (int)MIN(uri.n, 200), uri.p);
    }
    struct str key = {uri.p + 5, uri.n - 5};
    struct str bucket = str_split(&key, '/');
    if (!bucket_is_valid(bucket)) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a bucket's name",
                       (int)MIN(bucket.n, 100), bucket.p);
    }
    if (key.n >= sizeof ret->key) {
        return err_set(err, ERR_INVALID,
                       "the key in 's3://" STR_FMT "/...' is longer than %zu bytes",
                       STR_ARG(bucket), sizeof ret->key - 1);
    }
    if (!str_is_utf8(key)) {
        return err_set(err, ERR_INVALID, "the key in 's3://" STR_FMT "/...' is not UTF-8",
                       STR_ARG(bucket));
    }
    *ret = (struct s3_uri){0};
    memcpy(ret->bucket, bucket.p, bucket.n);
    if (key.n > 0) {
        memcpy(ret->key, key.p, key.n);
    }
    return true;
}

struct op {
    struct aws_client *c;
    const char *operation;
    struct s3_uri u;
    bool needs_length;
    bool is_get;
    size_t body_max;
    const char *xml_root;
    char checksum[S3_CHECKSUM_N];
    char crc64nvme[S3_CRC64_N];
    bool checksum_required;
    bool compares;
    bool head;
    bool (*on_data)(void *data_ctx, struct str data);
    void *data_ctx;
    s3_cb cb;
    void *ctx;
};

void s3_spec_header(struct s3_spec *spec, const char *name, const char *value)
{
    ASSERT(spec->headers_n < S3_HEADERS_MAX);
    spec->headers[spec->headers_n++] = (struct http_header){name, value};
}

void s3_spec_encrypt(struct s3_spec *spec, const char *kms_key)
{
    if (kms_key != NULL && kms_key[0] != '\0') {
        s3_spec_header(spec, "x-amz-server-side-encryption", "aws:kms");
        s3_spec_header(spec, "x-amz-server-side-encryption-aws-kms-key-id", kms_key);
    }
}

void s3_spec_checksum(struct s3_spec *spec, enum aws_checksums how)
{
    uint8_t raw[32];
    AUTO_BUF struct buf text = BUF_INIT(sizeof spec->checksum);
    hash_sha256(spec->body.p != NULL ? spec->body.p : "", spec->body.n, raw);
    str_hex(raw, sizeof raw, spec->sha256);
    if (how != AWS_CHECKSUMS_OFF) {
        str_base64(&text, raw, sizeof raw);
        (void)snprintf(spec->checksum, sizeof spec->checksum, "%s", buf_cstr(&text));
        spec->checksum_required = how == AWS_CHECKSUMS_REQUIRED;
        s3_spec_header(spec, "x-amz-checksum-sha256", spec->checksum);
    } else {
        s3_crc64_text(hash_crc64nvme(0, spec->body.p, spec->body.n), spec->crc64nvme);
    }
}

void s3_spec_ask_checksum(struct s3_spec *spec)
{
    s3_spec_header(spec, "x-amz-checksum-mode", "ENABLED");
}

void s3_spec_compare(struct s3_spec *spec, const struct aws_client *c)
{
    if (aws_client_compares(c)) {
        s3_spec_ask_checksum(spec);
        spec->compares = true;
    }
}

bool s3_result_unreadable(struct s3_result *r, const char *operation, const char *why)
{
    r->outcome = AWS_UNKNOWN;
    return err_set(&r->err, ERR_NETWORK, "%s: %s", operation, why);
}

/* Size of the whole object: after the slash of Content-Range, else Content-Length. */
static int64_t whole_size(const struct http_reply *h)
{
    struct str range = http_reply_header(h, "Content-Range");
    int64_t n = -1;
    if (range.n > 0) {
        (void)str_split(&range, '/');
    } else {
        range = http_reply_header(h, "Content-Length");
    }
    return parse_i64(range, 0, INT64_MAX, &n, NULL) ? n : -1;
}

/* A header that is too long counts as absent. */
static void copy_header(const struct http_reply *h, const char *name, char *out, size_t out_n)
{
    struct str v = http_reply_header(h, name);
    if (v.n > 0 && v.n < out_n) {
        memcpy(out, v.p, v.n);
        out[v.n] = '\0';
    }
}

/* Compares the checksum in the answer to an upload with the one that was sent. */
static void check_checksum(const struct op *op, struct s3_result *r)
{
    if (r->checksum[0] == '\0' && op->checksum_required) {
        r->outcome = AWS_REFUSED;
        (void)err_set(&r->err, ERR_AWS,
                      "%s: the answer does not tell the checksum of what was stored; if something "
                      "on the way to S3 drops it, set AWS_REQUEST_CHECKSUM_CALCULATION to "
                      "when_required",
                      op->operation);
    } else if (r->checksum[0] != '\0' && strcmp(r->checksum, op->checksum) != 0) {
        (void)s3_result_unreadable(r, op->operation,
                                   "the checksum in the answer is not the one that was sent");
    }
}

/* Checks that a 2xx is a complete document: S3 may send 200 and then an <Error>. */
static void check_root(const struct op *op, const struct aws_reply *reply, struct s3_result *r)
{
    struct xml x;
    struct str root = {"", 0};
    xml_init(&x, reply->body);
    bool opened = xml_next(&x, &root) == XML_OPEN;
    if (opened && str_eq_cstr(root, op->xml_root) && aws_error_is_xml(reply->body)) {
        return;
    }
    struct aws_error text;
    aws_error_decode(reply->http, false, &text);
    if (text.code[0] == '\0') {
        (void)s3_result_unreadable(r, op->operation, "the answer is not the document it has to be");
        return;
    }
    struct aws_reply refused = *reply;
    refused.code = text.code;
    refused.message = text.message;
    refused.request_id = text.request_id;
    refused.outcome = aws_classify(reply->status, text.code, text.message);
    refused.status = strcmp(text.code, "PreconditionFailed") == 0 ? 412 : reply->status;
    r->outcome = refused.outcome;
    r->status = refused.status;
    (void)aws_reply_err(&refused, op->operation, &r->err);
}

struct refused_head { /* whose reason a GET tells */
    struct s3_result r;
    s3_cb cb;
    void *ctx;
};

static void on_reason(void *ctx, const struct s3_result *r)
{
    AUTO_FREE struct refused_head *h = ctx;
    bool told = r->status / 100 != 2 && r->status != 416; /* 416: an empty object */
    h->cb(h->ctx, told ? r : &h->r);
}

/* A HEAD has no body, so 400 says nothing: keys that have expired look like an object that cannot
 * be asked about so. */
static void ask_reason(const struct op *op, const struct s3_result *r)
{
    struct refused_head *h = xcalloc(1, sizeof *h);
    *h = (struct refused_head){*r, op->cb, op->ctx};
    h->r.body = STR("");
    s3_get(op->c, &op->u, 0, 0, S3_ERROR_BYTES_MAX, on_reason, h);
}

static void on_reply(void *ctx, const struct aws_reply *reply)
{
    AUTO_FREE struct op *op = ctx;
    struct s3_result r = {
        .outcome = reply->outcome, .status = reply->status, .body = reply->body, .size = -1};
    copy_header(reply->http, "ETag", r.etag, sizeof r.etag);
    copy_header(reply->http, "x-amz-checksum-sha256", r.checksum, sizeof r.checksum);
    copy_header(reply->http, "x-amz-checksum-crc64nvme", r.crc64nvme, sizeof r.crc64nvme);
    copy_header(reply->http, "x-amz-checksum-crc32", r.crc32, sizeof r.crc32);
    r.of_parts = str_eq_cstr(http_reply_header(reply->http, "x-amz-checksum-type"), "COMPOSITE") ||
                 strchr(r.checksum, '-') != NULL;
    copy_header(reply->http, S3_WRITER_HEADER, r.writer, sizeof r.writer);
    if (reply->outcome != AWS_OK) {
        (void)aws_reply_err(reply, op->operation, &r.err);
        (void)err_wrap(&r.err, "'s3://%s/%.200s'", op->u.bucket, op->u.key);
    } else {
        r.size = whole_size(reply->http);
        bool has_length = http_reply_header(reply->http, "Content-Length").n > 0 ||
                          http_reply_header(reply->http, "Transfer-Encoding").n > 0;
        if ((op->needs_length && !has_length) || (op->head && r.size < 0)) {
            (void)s3_result_unreadable(&r, op->operation, "the answer does not tell its length");
        } else if (op->is_get && r.body.n > op->body_max) {
            r.outcome = AWS_UNKNOWN; /* same outcome as a body cut off by reply_max */
            (void)err_set(&r.err, ERR_TOO_LARGE, "'s3://%s/%.200s' is larger than %zu bytes",
                          op->u.bucket, op->u.key, op->body_max);
        } else if (op->compares && !s3_body_fits(r.body, &r)) {
            (void)s3_result_unreadable(&r, op->operation,
                                       "the bytes that came are not those of the checksum");
        } else if (op->xml_root != NULL) {
            check_root(op, reply, &r);
        } else if (op->checksum[0] != '\0') {
            check_checksum(op, &r);
        } else if (op->crc64nvme[0] != '\0' && r.crc64nvme[0] != '\0' &&
                   strcmp(op->crc64nvme, r.crc64nvme) != 0) {
            (void)s3_result_unreadable(&r, op->operation, "what was stored is not what was sent");
        }
    }
    if (op->head && r.outcome == AWS_REFUSED && r.status == 400) {
        ask_reason(op, &r);
    } else {
        op->cb(op->ctx, &r);
    }
}

static bool on_data(void *ctx, struct str data)
{
    struct op *op = ctx;
    return op->on_data(op->data_ctx, data);
}

void s3_start(struct aws_client *c, const struct s3_uri *u, const struct s3_spec *spec, s3_cb cb,
              void *ctx)
{
    struct op *op = xcalloc(1, sizeof *op);
    *op = (struct op){.c = c,
                      .operation = spec->operation,
                      .u = *u,
                      .needs_length = spec->needs_length,
                      .is_get = spec->is_get,
                      .body_max = spec->body_max,
                      .xml_root = spec->xml_root,
                      .checksum_required = spec->checksum_required,
                      .compares = spec->compares,
                      .head = strcmp(spec->method, "HEAD") == 0,
                      .on_data = spec->on_data,
                      .data_ctx = spec->data_ctx,
                      .cb = cb,
                      .ctx = ctx};
    memcpy(op->checksum, spec->checksum, sizeof op->checksum);
    memcpy(op->crc64nvme, spec->crc64nvme, sizeof op->crc64nvme);
    AUTO_BUF struct buf path = BUF_INIT(3 * sizeof u->key + 2);
    buf_add_char(&path, '/');
    if (!spec->of_bucket) {
        str_url_encode(&path, str_of(u->key), true);
    }
    struct aws_call call = {
        .service = "s3",
        .operation = spec->operation,
        .bucket = u->bucket,
        .method = spec->method,
        .path = buf_cstr(&path),
        .query = spec->query,
        .content_type = spec->content_type,
        .headers = spec->headers,
        .headers_n = spec->headers_n,
        .body = spec->body,
        .body_borrow = spec->body_borrow,
        .payload_sha256 = spec->sha256[0] != '\0' ? spec->sha256 : NULL,
        .reply_max = spec->is_get ? MAX(spec->body_max, S3_ERROR_BYTES_MAX) : S3_XML_BYTES_MAX,
        .timeout_us = S3_TIMEOUT_US,
        .stall_timeout_us =
            spec->stall_timeout_us > 0 ? spec->stall_timeout_us : S3_STALL_TIMEOUT_US,
        .on_data = spec->on_data != NULL ? on_data : NULL,
    };
    (void)aws_send(c, &call, on_reply, op);
}

struct get {
    int64_t from;
    bool ranged;
    s3_cb cb;
    void *ctx;
};

/* A server that ignores Range answers 200 with other bytes than were asked for. */
static void on_get(void *ctx, const struct s3_result *r)
{
    AUTO_FREE struct get *g = ctx;
    struct s3_result checked = *r;
    if (r->outcome == AWS_OK && g->ranged && r->status != 206) {
        checked.outcome = AWS_REFUSED;
        (void)err_set(&checked.err, ERR_AWS, "GetObject: the range was ignored");
    }
    g->cb(g->ctx, &checked);
}

void s3_get(struct aws_client *c, const struct s3_uri *u, int64_t range_from, int64_t range_to_incl,
            size_t max_bytes, s3_cb cb, void *ctx)
{
    ASSERT(range_from >= 0);
    ASSERT(range_to_incl == -1 || range_to_incl >= range_from);
    struct s3_spec spec = {.operation = "GetObject",
                           .method = "GET",
                           .needs_length = true,
                           .is_get = true,
                           .body_max = max_bytes};
    struct get *g = xcalloc(1, sizeof *g);
    *g = (struct get){range_from, range_from > 0 || range_to_incl >= 0, cb, ctx};
    AUTO_FREE char *range = NULL;
    if (g->ranged) {
        range = range_to_incl < 0
                    ? xasprintf("bytes=%jd-", (intmax_t)range_from)
                    : xasprintf("bytes=%jd-%jd", (intmax_t)range_from, (intmax_t)range_to_incl);
        s3_spec_header(&spec, "Range", range);
    } else {
        s3_spec_compare(&spec, c);
    }
    s3_start(c, u, &spec, on_get, g);
}

void s3_head(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx)
{
    struct s3_spec spec = {.operation = "HeadObject", .method = "HEAD"};
    s3_start(c, u, &spec, cb, ctx);
}

void s3_head_sums(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx)
{
    struct s3_spec spec = {.operation = "HeadObject", .method = "HEAD"};
    s3_spec_ask_checksum(&spec);
    s3_start(c, u, &spec, cb, ctx);
}

void s3_put(struct aws_client *c, const struct s3_uri *u, struct str body, const char *content_type,
            const char *if_none_match, const char *kms_key, s3_cb cb, void *ctx)
{
    struct s3_spec spec = {.operation = "PutObject",
                           .method = "PUT",
                           .body = body,
                           .content_type =
                               content_type != NULL ? content_type : "application/octet-stream"};
    if (if_none_match != NULL) {
        s3_spec_header(&spec, "If-None-Match", if_none_match);
    }
    s3_spec_encrypt(&spec, kms_key);
    s3_spec_checksum(&spec, aws_client_checksums(c));
    s3_start(c, u, &spec, cb, ctx);
}

void s3_put_lent(struct aws_client *c, const struct s3_uri *u, struct str body,
                 const char *content_type, const char *kms_key, s3_cb cb, void *ctx)
{
    struct s3_spec spec = {.operation = "PutObject",
                           .method = "PUT",
                           .body = body,
                           .body_borrow = true,
                           .content_type = content_type};
    s3_spec_encrypt(&spec, kms_key);
    s3_start(c, u, &spec, cb, ctx);
}

void s3_delete(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx)
{
    struct s3_spec spec = {.operation = "DeleteObject", .method = "DELETE"};
    s3_start(c, u, &spec, cb, ctx);
}
