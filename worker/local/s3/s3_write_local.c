/* See s3_write_local.h. */
#include "s3_write_local.h"
#include "common/rng.h"
#include "local/app.h"
#include "local/http/upload.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>

#define ENCRYPTION "x-amz-server-side-encryption"

void s3_reply_err(struct request *r, const struct err *err)
{
    if (err->code == ERR_NOT_FOUND) {
        reply_error(r, 404, "NoSuchBucket", "The specified bucket does not exist");
    } else if (err->code == ERR_PRECONDITION) {
        reply_error(r, 412, "PreconditionFailed",
                    "At least one of the pre-conditions you specified did not hold");
    } else if (err->code == ERR_LIMIT) {
        reply_error(r, 400, "KeyTooLongError", "Your key is too long");
    } else if (err->code == ERR_INVALID) {
        reply_error(r, 400, "InvalidRequest", "%s", err->message);
    } else {
        reply_error(r, 500, "InternalError", "%s", err->message);
    }
}

/* The body has the MD5 that Content-MD5 names, if it does. False: answered. */
static bool md5_ok(struct request *r)
{
    struct str md5 = request_header(r, "content-md5");
    uint8_t raw[16];
    AUTO_BUF struct buf want = BUF_INIT(64);
    if (md5.p == NULL) {
        return true;
    }
    bool ok = str_unhex(str_of(r->upload->md5_hex), raw, sizeof raw);
    str_base64(&want, raw, sizeof raw);
    if (ok && str_eq(buf_str(&want), str_trim(md5))) {
        return true;
    }
    reply_error(r, 400, "BadDigest",
                "The Content-MD5 you specified did not match what we received.");
    return false;
}

bool s3_body_ok(struct request *r, struct s3_checksum *ret)
{
    const struct upload *u = r->upload;
    struct err err = ERR_INIT;
    if (u == NULL || u->io_failed) {
        reply_error(r, 500, "InternalError", "the body could not be stored");
        return false;
    }
    struct str decoded = request_header(r, "x-amz-decoded-content-length");
    int64_t want = u->bytes;
    if (u->frame_failed || (decoded.p != NULL && !parse_i64(decoded, 0, INT64_MAX, &want, &err)) ||
        want != u->bytes) {
        reply_error(r, 400, "IncompleteBody",
                    "You did not provide the number of bytes specified by the Content-Length HTTP "
                    "header");
        return false;
    }
    return s3_checksum_of_request(r, ret) && md5_ok(r);
}

bool s3_is_named(const json_t *buckets, const char *bucket)
{
    size_t i;
    json_t *name;
    json_array_foreach(buckets, i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), bucket) == 0) {
            return true;
        }
    }
    return false;
}

void s3_etag_of_body(const struct request *r, const char *bucket, const char *md5_hex,
                     char out[static 33])
{
    uint8_t raw[16];
    if (s3_is_named(r->app->set.kms_buckets, bucket)) {
        rng_secret(raw, sizeof raw);
        str_hex(raw, sizeof raw, out);
    } else {
        (void)snprintf(out, 33, "%s", md5_hex);
    }
}

bool s3_encryption_ok(struct request *r, const char *bucket)
{
    if (!s3_is_named(r->app->set.kms_only_buckets, bucket) ||
        str_eq_cstr(request_header(r, ENCRYPTION), "aws:kms")) {
        return true;
    }
    reply_error(r, 403, "AccessDenied",
                "s3:PutObject is explicitly denied in a resource-based policy");
    return false;
}

void s3_encryption_headers(struct request *r, const char *bucket)
{
    struct str asked = request_header(r, ENCRYPTION);
    struct str asked_key = request_header(r, ENCRYPTION "-aws-kms-key-id");
    if (asked.n > 0) {
        AUTO_FREE char *how = xstrndup(asked.p, asked.n);
        AUTO_FREE char *with = xstrndup(asked_key.p, asked_key.n);
        reply_header(r, ENCRYPTION, how);
        if (asked_key.n > 0) {
            reply_header(r, ENCRYPTION "-aws-kms-key-id", with);
        }
        return;
    }
    if (!s3_is_named(r->app->set.kms_buckets, bucket)) {
        return;
    }
    AUTO_FREE char *key = xasprintf("arn:aws:kms:%s:%s:key/11111111-2222-3333-4444-555555555555",
                                    r->app->set.region, r->app->set.account);
    reply_header(r, ENCRYPTION, "aws:kms");
    reply_header(r, ENCRYPTION "-aws-kms-key-id", key);
}

void s3_meta_of_request(const struct request *r, struct s3_meta *m)
{
    struct str type = request_header(r, "content-type");
    bool usable = type.n > 0 && type.n < sizeof m->content_type;
    (void)snprintf(m->content_type, sizeof m->content_type, STR_FMT,
                   STR_ARG(usable ? type : STR("binary/octet-stream")));
    size_t at = 0;
    for (size_t i = 0; i < r->headers_n; i++) {
        struct str name = r->headers[i].name;
        struct str value = r->headers[i].value;
        if (name.n > 11 && strncasecmp(name.p, "x-amz-meta-", 11) == 0 &&
            at + name.n + value.n + 4 < sizeof m->user) {
            size_t begin = at;
            at += (size_t)snprintf(m->user + at, sizeof m->user - at, STR_FMT ": " STR_FMT "\n",
                                   STR_ARG(name), STR_ARG(value));
            for (size_t k = begin; k < begin + name.n; k++) { /* S3 keeps names in lower case */
                m->user[k] = (char)tolower((unsigned char)m->user[k]);
            }
        }
    }
}

/* The current ETag of an object; false when it does not exist. */
static bool etag_now(const struct request *r, const char *bucket, const char *key,
                     char out[static 48])
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    struct stat st;
    struct s3_meta m;
    if (!s3_store_path(r->app->root, bucket, key, path, &err)) {
        return false;
    }
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !s3_store_meta_get(r->app->root, fd, &st, &m, &err)) {
        return false;
    }
    (void)snprintf(out, 48, "%s", m.etag);
    return true;
}

bool s3_etag_matches(struct str said, const char *etag)
{
    said = str_trim(said);
    if (said.n >= 2 && said.p[0] == '"' && said.p[said.n - 1] == '"') {
        said = (struct str){said.p + 1, said.n - 2};
    }
    return str_eq_cstr(said, etag) || str_eq_cstr(said, "*");
}

bool s3_publish(struct request *r, const char *bucket, const char *key, const char *tmp,
                const struct s3_meta *m)
{
    struct err err = ERR_INIT;
    struct stat st;
    struct str none = request_header(r, "if-none-match");
    struct str match = request_header(r, "if-match");
    char etag[48] = "";
    if (none.p != NULL && !str_eq_cstr(str_trim(none), "*")) {
        /* The text is S3's. */
        reply_error(r, 501, "NotImplemented",
                    "A header you provided implies functionality that is not implemented");
        return false;
    }
    if (stat(tmp, &st) != 0 || !s3_store_meta_put(r->app->root, &st, m, &err)) {
        reply_error(r, 500, "InternalError", "the object could not be stored");
        return false;
    }
    pthread_mutex_lock(&r->app->s3_mu);
    bool ok = true;
    if (match.p != NULL) {
        bool there = etag_now(r, bucket, key, etag);
        if (!there) {
            reply_error(r, 404, "NoSuchKey", "The specified key does not exist.");
            ok = false;
        } else if (!s3_etag_matches(match, etag)) {
            (void)err_set(&err, ERR_PRECONDITION, "etag differs");
            s3_reply_err(r, &err);
            ok = false;
        }
    }
    if (ok) {
        ok = none.p != NULL ? s3_store_publish_new(r->app->root, bucket, key, tmp, &err)
                            : s3_store_publish(r->app->root, bucket, key, tmp, &err);
        if (!ok) {
            s3_reply_err(r, &err);
        }
    }
    pthread_mutex_unlock(&r->app->s3_mu);
    return ok;
}
