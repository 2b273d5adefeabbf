/* S3 operations on objects: see s3_local.h. */
#include "s3_local.h"
#include "common/clock.h"
#include "local/app.h"
#include "local/http/upload.h"
#include "local/jobs/files.h"
#include "s3_awkward.h"
#include "s3_range.h"
#include "s3_write_local.h"
#include <fcntl.h>
#include <stdio.h>

bool s3_target(const struct request *r, char bucket[static S3_BUCKET_MAX],
               char key[static S3_KEY_MAX + 1])
{
    AUTO_BUF struct buf path = BUF_INIT(S3_KEY_MAX + S3_BUCKET_MAX + 2);
    if (r->path.n == 0 || r->path.p[0] != '/' || !str_url_decode(&path, r->path, false) ||
        path.overflow || memchr(buf_cstr(&path), '\0', path.n) != NULL) {
        return false;
    }
    const char *p = buf_cstr(&path) + 1;
    const char *slash = strchr(p, '/');
    size_t n = slash == NULL ? strlen(p) : (size_t)(slash - p);
    const char *rest = slash == NULL ? "" : slash + 1;
    if (n >= S3_BUCKET_MAX || strlen(rest) > S3_KEY_MAX) {
        return false;
    }
    memcpy(bucket, p, n);
    bucket[n] = '\0';
    (void)snprintf(key, S3_KEY_MAX + 1, "%s", rest);
    return true;
}

bool s3_wants_upload(const char *method)
{
    return strcmp(method, "PUT") == 0;
}

/* True when the request is about something of a bucket or object that is not played here. Never
 * take it for the object itself. */
static bool is_subresource(const struct request *r)
{
    static const char *const names[] = {"accelerate",
                                        "acl",
                                        "analytics",
                                        "attributes",
                                        "cors",
                                        "encryption",
                                        "events",
                                        "intelligent-tiering",
                                        "inventory",
                                        "legal-hold",
                                        "lifecycle",
                                        "logging",
                                        "metrics",
                                        "notification",
                                        "object-lock",
                                        "ownershipControls",
                                        "policy",
                                        "policyStatus",
                                        "publicAccessBlock",
                                        "replication",
                                        "requestPayment",
                                        "restore",
                                        "retention",
                                        "select",
                                        "session",
                                        "tagging",
                                        "torrent",
                                        "versionId",
                                        "versioning",
                                        "versions",
                                        "website"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (request_has_query(r, names[i])) {
            return true;
        }
    }
    return false;
}

static const char *bucket_operation(const struct request *r)
{
    const char *m = r->method;
    if (strcmp(m, "GET") == 0) {
        return request_has_query(r, "location")    ? "GetBucketLocation"
               : request_has_query(r, "uploads")   ? "ListMultipartUploads"
               : request_has_query(r, "list-type") ? "ListObjectsV2"
                                                   : "ListObjects";
    }
    if (strcmp(m, "POST") == 0) {
        return request_has_query(r, "delete") ? "DeleteObjects" : "";
    }
    return strcmp(m, "HEAD") == 0     ? "HeadBucket"
           : strcmp(m, "PUT") == 0    ? "CreateBucket"
           : strcmp(m, "DELETE") == 0 ? "DeleteBucket"
                                      : "";
}

const char *s3_operation(const struct request *r)
{
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    const char *m = r->method;
    bool upload = request_has_query(r, "uploadId");
    if (!s3_target(r, bucket, key) || is_subresource(r)) {
        return "";
    }
    if (bucket[0] == '\0') {
        return strcmp(m, "GET") == 0 ? "ListBuckets" : "";
    }
    if (key[0] == '\0') {
        return bucket_operation(r);
    }
    if (strcmp(m, "GET") == 0) {
        return upload ? "ListParts" : "GetObject";
    }
    if (strcmp(m, "HEAD") == 0) {
        return "HeadObject";
    }
    if (strcmp(m, "PUT") == 0) {
        bool copy = request_header(r, "x-amz-copy-source").p != NULL;
        return upload ? copy ? "UploadPartCopy" : "UploadPart" : copy ? "CopyObject" : "PutObject";
    }
    if (strcmp(m, "DELETE") == 0) {
        return upload ? "AbortMultipartUpload" : "DeleteObject";
    }
    if (strcmp(m, "POST") == 0) {
        return upload                            ? "CompleteMultipartUpload"
               : request_has_query(r, "uploads") ? "CreateMultipartUpload"
                                                 : "";
    }
    return "";
}

static void put_object(struct request *r, const char *bucket, const char *key)
{
    struct s3_meta m = {0};
    char quoted[64];
    if (!s3_encryption_ok(r, bucket) || !s3_body_ok(r, &m.checksum) ||
        !s3_checksum_by_default(r, &m.checksum)) {
        return;
    }
    s3_meta_of_request(r, &m);
    s3_etag_of_body(r, bucket, r->upload->md5_hex, m.etag);
    if (!s3_publish(r, bucket, key, r->upload->tmp, &m)) {
        return;
    }
    r->upload->tmp[0] = '\0';
    r->accepted = true;
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", m.etag);
    reply_header(r, "ETag", quoted);
    s3_checksum_headers(r, &m.checksum);
    s3_encryption_headers(r, bucket);
    r->reply.status = 200;
}

static void object_headers(struct request *r, const struct s3_meta *m, const struct stat *st)
{
    char text[64];
    (void)snprintf(text, sizeof text, "\"%s\"", m->etag);
    reply_header(r, "ETag", text);
    char date[30];
    clock_format_http(st->st_mtim.tv_sec * USEC_PER_SEC, date);
    reply_header(r, "Last-Modified", date);
    reply_header(r, "Accept-Ranges", "bytes");
    reply_header(r, "Content-Type", m->content_type);
    struct str rest = str_of(m->user);
    while (rest.n > 0) {
        struct str line = str_split(&rest, '\n');
        struct str name = str_split(&line, ':');
        AUTO_FREE char *n = str_dup(name);
        AUTO_FREE char *v = str_dup(str_trim(line));
        reply_header(r, n, v);
    }
}

static void get_object(struct request *r, const char *bucket, const char *key)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    struct stat st;
    struct s3_meta m;
    if (!s3_store_path(r->app->root, bucket, key, path, &err)) {
        reply_error(r, 404, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        reply_error(r, 404, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    if (!s3_store_meta_get(r->app->root, fd, &st, &m, &err)) {
        s3_reply_err(r, &err);
        return;
    }
    struct str match = request_header(r, "if-match");
    struct str none = request_header(r, "if-none-match");
    if (match.p != NULL && !s3_etag_matches(match, m.etag)) {
        (void)err_set(&err, ERR_PRECONDITION, "etag differs");
        s3_reply_err(r, &err);
        return;
    }
    if (none.p != NULL && s3_etag_matches(none, m.etag)) {
        r->reply.status = 304;
        object_headers(r, &m, &st);
        return;
    }
    struct str range = request_header(r, "range");
    int found =
        range.p == NULL ? 0 : s3_range_parse(range, st.st_size, &r->reply.offset, &r->reply.length);
    if (found < 0) {
        reply_error(r, 416, "InvalidRange", "The requested range is not satisfiable");
        return;
    }
    object_headers(r, &m, &st);
    s3_encryption_headers(r, bucket);
    if (found <= 0 && str_ieq_cstr(request_header(r, "x-amz-checksum-mode"), "enabled")) {
        s3_checksum_headers(r, &m.checksum);
    }
    r->reply.status = 200;
    if (found > 0) {
        char text[96];
        (void)snprintf(text, sizeof text, "bytes %lld-%lld/%lld", (long long)r->reply.offset,
                       (long long)(r->reply.offset + r->reply.length - 1), (long long)st.st_size);
        reply_header(r, "Content-Range", text);
        r->reply.status = 206;
    } else {
        r->reply.offset = 0;
        r->reply.length = st.st_size;
    }
    r->reply.fd = fd;
    /* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): AUTO_FD reads it at the end */
    fd = -1;
}

static void bucket_operate(struct request *r, const char *bucket)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (strcmp(r->operation, "CreateBucket") == 0) {
        if (!s3_store_path(r->app->root, bucket, "x", path, &err)) {
            reply_error(r, 400, "InvalidBucketName", "The specified bucket is not valid.");
            return;
        }
        *strrchr(path, '/') = '\0';
        if (mkdir(path, 0755) != 0) {
            reply_error(r, 409, "BucketAlreadyOwnedByYou", "The bucket is yours already.");
            return;
        }
        r->reply.status = 200;
        r->accepted = true;
        return;
    }
    if (!s3_store_has_bucket(r->app->root, bucket)) {
        (void)err_set(&err, ERR_NOT_FOUND, "no bucket");
        s3_reply_err(r, &err);
        return;
    }
    if (strcmp(r->operation, "GetBucketLocation") == 0) {
        bool dflt = strcmp(r->app->set.region, "us-east-1") == 0;
        buf_addf(&r->reply.body,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<LocationConstraint "
                 "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">%s</LocationConstraint>",
                 dflt ? "" : r->app->set.region);
        reply_xml(r);
    } else if (strcmp(r->operation, "DeleteBucket") == 0) {
        if (!files_path(path, sizeof path, &err, "%s/s3/%s", r->app->root, bucket) ||
            s3_awkward_any(r->app->root, bucket) || rmdir(path) != 0) {
            reply_error(r, 409, "BucketNotEmpty", "The bucket you tried to delete is not empty");
            return;
        }
        r->reply.status = 204;
    } else {
        reply_header(r, "x-amz-bucket-region", r->app->set.region);
        r->reply.status = 200;
    }
}

static bool bucket_denied(const struct request *r, const char *bucket)
{
    return s3_is_named(r->app->set.denied_buckets, bucket);
}

bool s3_is_public(const struct request *r)
{
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    return strcmp(r->service, "s3") == 0 && reads && request_header(r, "authorization").p == NULL &&
           s3_target(r, bucket, key) && s3_is_named(r->app->set.public_buckets, bucket);
}

static void object_operate(struct request *r, const char *bucket, const char *key)
{
    const char *op = r->operation;
    char etag[33];
    if (strcmp(op, "GetObject") == 0 || strcmp(op, "HeadObject") == 0) {
        get_object(r, bucket, key);
    } else if (strcmp(op, "PutObject") == 0) {
        put_object(r, bucket, key);
    } else if (strcmp(op, "DeleteObject") == 0) {
        pthread_mutex_lock(&r->app->s3_mu);
        s3_store_remove(r->app->root, bucket, key);
        pthread_mutex_unlock(&r->app->s3_mu);
        r->reply.status = 204;
    } else if (strcmp(op, "CreateMultipartUpload") == 0) {
        s3_multipart_create(r, bucket, key);
    } else if (strcmp(op, "UploadPart") == 0) {
        (void)s3_multipart_part(r, bucket, key, false, etag);
    } else if (strcmp(op, "UploadPartCopy") == 0) {
        s3_copy_part(r, bucket, key);
    } else if (strcmp(op, "CopyObject") == 0) {
        s3_copy_object(r, bucket, key);
    } else if (strcmp(op, "CompleteMultipartUpload") == 0) {
        s3_multipart_complete(r, bucket, key);
    } else if (strcmp(op, "AbortMultipartUpload") == 0) {
        s3_multipart_abort_upload(r, bucket, key);
    } else {
        s3_multipart_list(r, bucket, key);
    }
}

void s3_handle(struct request *r)
{
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    struct err err = ERR_INIT;
    if (!s3_target(r, bucket, key)) {
        reply_error(r, 400, "InvalidURI", "Couldn't parse the specified URI.");
    } else if (r->operation[0] == '\0') {
        /* The text is S3's. */
        reply_error(r, 501, "NotImplemented",
                    "A header or query you provided implies functionality that is not implemented");
    } else if (bucket[0] == '\0') {
        s3_list_buckets(r);
    } else if (bucket_denied(r, bucket)) {
        reply_error(r, 403, "AccessDenied", "Access Denied");
    } else if ((key[0] != '\0' || strcmp(r->operation, "DeleteObjects") == 0) &&
               !s3_store_has_bucket(r->app->root, bucket)) {
        (void)err_set(&err, ERR_NOT_FOUND, "no bucket");
        s3_reply_err(r, &err);
    } else if (strcmp(r->operation, "DeleteObjects") == 0) {
        s3_delete_objects(r, bucket);
    } else if (str_starts(str_of(r->operation), "ListObjects")) {
        s3_list_objects(r, bucket);
    } else if (strcmp(r->operation, "ListMultipartUploads") == 0) {
        s3_multipart_list_uploads(r, bucket);
    } else if (key[0] == '\0') {
        bucket_operate(r, bucket);
    } else {
        object_operate(r, bucket, key);
    }
}
