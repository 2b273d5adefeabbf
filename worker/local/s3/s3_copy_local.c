/* CopyObject and UploadPartCopy: the source's bytes stand for the request's body. See
 * s3_local.h. */
#include "common/clock.h"
#include "local/app.h"
#include "local/http/upload.h"
#include "local/iam/permission.h"
#include "s3_local.h"
#include "s3_range.h"
#include "s3_write_local.h"
#include <fcntl.h>
#include <stdio.h>

struct copy_source {
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    struct s3_meta meta;
    struct stat st;
    int fd;
};

/* Bucket and key of x-amz-copy-source. False: answered. */
static bool source_name(struct request *r, struct copy_source *s)
{
    AUTO_BUF struct buf path = BUF_INIT(S3_BUCKET_MAX + S3_KEY_MAX + 2);
    struct str header = request_header(r, "x-amz-copy-source");
    struct str name = str_split(&header, '?');
    bool ok = header.n == 0 && str_url_decode(&path, name, false) && !path.overflow;
    struct str rest = buf_str(&path);
    if (ok && str_starts(rest, "/")) {
        rest = (struct str){rest.p + 1, rest.n - 1};
    }
    struct str bucket = str_split(&rest, '/');
    ok = ok && bucket.n > 0 && bucket.n < S3_BUCKET_MAX && rest.n > 0 && rest.n <= S3_KEY_MAX &&
         memchr(rest.p, '\0', rest.n) == NULL;
    if (!ok) {
        reply_error(r, 400, "InvalidArgument",
                    "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
        return false;
    }
    (void)snprintf(s->bucket, sizeof s->bucket, STR_FMT, STR_ARG(bucket));
    (void)snprintf(s->key, sizeof s->key, STR_FMT, STR_ARG(rest));
    return true;
}

static bool conditions_hold(const struct request *r, const char *etag)
{
    struct str match = request_header(r, "x-amz-copy-source-if-match");
    struct str none = request_header(r, "x-amz-copy-source-if-none-match");
    return (match.p == NULL || s3_etag_matches(match, etag)) &&
           (none.p == NULL || !s3_etag_matches(none, etag));
}

/* Open the source under the request's conditions; false: answered. */
static bool source_open(struct request *r, struct copy_source *s)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    *s = (struct copy_source){.fd = -1};
    if (!source_name(r, s)) {
        return false;
    }
    AUTO_FREE char *arn = xasprintf("arn:aws:s3:::%s/%s", s->bucket, s->key);
    if (s3_is_named(r->app->set.denied_buckets, s->bucket) ||
        !permission_allows(r, "s3:GetObject", arn)) {
        reply_error(r, 403, "AccessDenied", "Access Denied");
    } else if (!s3_store_has_bucket(r->app->root, s->bucket)) {
        reply_error(r, 404, "NoSuchBucket", "The specified bucket does not exist");
    } else if (!s3_store_path(r->app->root, s->bucket, s->key, path, &err) ||
               (s->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 || fstat(s->fd, &s->st) != 0 ||
               !S_ISREG(s->st.st_mode)) {
        reply_error(r, 404, "NoSuchKey", "The specified key does not exist.");
    } else if (!s3_store_meta_get(r->app->root, s->fd, &s->st, &s->meta, &err)) {
        s3_reply_err(r, &err);
    } else if (!conditions_hold(r, s->meta.etag)) {
        reply_error(r, 412, "PreconditionFailed",
                    "At least one of the pre-conditions you specified did not hold");
    } else {
        return true;
    }
    fd_closep(&s->fd);
    return false;
}

/* Put n bytes of the source from `from` in place of the body. False: answered. */
static bool body_replace(struct request *r, const struct copy_source *s, int64_t from, int64_t n)
{
    AUTO_FREE char *chunk = xmalloc(S3_CHUNK_BYTES);
    struct upload *u = upload_new(r->app->root, r->arrival, (struct str){0});
    bool ok = u != NULL;
    while (ok && n > 0) {
        ssize_t got = pread(s->fd, chunk, MIN((size_t)n, S3_CHUNK_BYTES), from);
        ok = got > 0;
        if (ok) {
            upload_add(u, chunk, (size_t)got);
            from += got;
            n -= got;
        }
    }
    if (!ok) {
        upload_free(u);
        reply_error(r, 500, "InternalError", "the source could not be read");
        return false;
    }
    upload_end(u);
    upload_free(r->upload);
    r->upload = u;
    return true;
}

static void result_add(struct request *r, const char *element, const char *etag)
{
    char date[32];
    clock_format_rfc3339(clock_wall_us(), false, date);
    date[strlen(date) - 1] = '\0';
    buf_addf(&r->reply.body,
             S3_XML_HEAD "<%s " S3_XMLNS "><ETag>&quot;%s&quot;</ETag><LastModified>%s.000Z"
                         "</LastModified></%s>",
             element, etag, date, element);
    reply_xml(r);
}

void s3_copy_object(struct request *r, const char *bucket, const char *key)
{
    struct copy_source s;
    struct s3_meta m = {0};
    bool replace = str_ieq_cstr(str_trim(request_header(r, "x-amz-metadata-directive")), "REPLACE");
    if (!s3_encryption_ok(r, bucket) || !source_open(r, &s)) {
        return;
    }
    if (!replace && strcmp(s.bucket, bucket) == 0 && strcmp(s.key, key) == 0) {
        reply_error(r, 400, "InvalidRequest",
                    "This copy request is illegal because it is trying to copy an object to itself "
                    "without changing the object's metadata, storage class, website redirect "
                    "location or encryption attributes.");
    } else if (body_replace(r, &s, 0, s.st.st_size)) {
        if (replace) {
            s3_meta_of_request(r, &m);
        } else {
            m = s.meta;
        }
        m.checksum = s.meta.checksum.parts_n > 0 ? (struct s3_checksum){0} : s.meta.checksum;
        s3_etag_of_body(r, bucket, r->upload->md5_hex, m.etag);
        if (s3_publish(r, bucket, key, r->upload->tmp, &m)) {
            r->upload->tmp[0] = '\0';
            r->accepted = true;
            s3_encryption_headers(r, bucket);
            result_add(r, "CopyObjectResult", m.etag);
        }
    }
    fd_closep(&s.fd);
}

void s3_copy_part(struct request *r, const char *bucket, const char *key)
{
    struct copy_source s;
    char etag[33];
    int64_t from = 0;
    int64_t n;
    struct str range = request_header(r, "x-amz-copy-source-range");
    if (!source_open(r, &s)) {
        return;
    }
    n = s.st.st_size;
    if (range.p != NULL && s3_range_parse(range, s.st.st_size, &from, &n) <= 0) {
        reply_error(r, 400, "InvalidArgument",
                    "Range specified is not valid for source object of size: %lld",
                    (long long)s.st.st_size);
    } else if (body_replace(r, &s, from, n) && s3_multipart_part(r, bucket, key, true, etag)) {
        result_add(r, "CopyPartResult", etag);
    }
    fd_closep(&s.fd);
}
