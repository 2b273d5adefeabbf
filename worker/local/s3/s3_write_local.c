/* See s3_write_local.h. */
#include "s3_write_local.h"
#include "local/app.h"
#include "local/http/upload.h"
#include <fcntl.h>
#include <stdio.h>

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

static bool checksum_ok(const struct request *r, const char *name, struct str value)
{
    AUTO_BUF struct buf want = BUF_INIT(128);
    const struct upload *u = r->upload;
    if (strcmp(name, "x-amz-checksum-sha256") == 0) {
        uint8_t raw[32];
        if (!str_unhex(str_of(u->sha256_hex), raw, sizeof raw)) {
            return false;
        }
        str_base64(&want, raw, sizeof raw);
    } else if (strcmp(name, "x-amz-checksum-crc32") == 0) {
        buf_add_be32(&want, u->crc32);
        uint8_t raw[4];
        memcpy(raw, want.p, sizeof raw);
        buf_reset(&want);
        str_base64(&want, raw, sizeof raw);
    } else {
        return true; /* a checksum we do not compute */
    }
    return str_eq(buf_str(&want), value);
}

static bool digests_ok(const struct request *r)
{
    static const char *const names[] = {"x-amz-checksum-sha256", "x-amz-checksum-crc32"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct str said = request_header(r, names[i]);
        if (said.p != NULL && !checksum_ok(r, names[i], str_trim(said))) {
            return false;
        }
    }
    if (r->upload->trailer_name[0] != '\0' &&
        !checksum_ok(r, r->upload->trailer_name, str_trim(str_of(r->upload->trailer_value)))) {
        return false;
    }
    struct str md5 = request_header(r, "content-md5");
    if (md5.p == NULL) {
        return true;
    }
    uint8_t raw[16];
    AUTO_BUF struct buf want = BUF_INIT(64);
    bool ok = str_unhex(str_of(r->upload->md5_hex), raw, sizeof raw);
    str_base64(&want, raw, sizeof raw);
    return ok && str_eq(buf_str(&want), str_trim(md5));
}

bool s3_body_ok(struct request *r)
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
    if (!digests_ok(r)) {
        reply_error(r, 400, "BadDigest",
                    "The Content-MD5 or checksum value that you specified did not match what the "
                    "server received.");
        return false;
    }
    return true;
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
            at += (size_t)snprintf(m->user + at, sizeof m->user - at, STR_FMT ": " STR_FMT "\n",
                                   STR_ARG(name), STR_ARG(value));
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
