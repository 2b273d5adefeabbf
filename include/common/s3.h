/* S3 objects over aws.h. URIs are s3://bucket/key. A custom endpoint uses path style, AWS
 * virtual-host style. What is uploaded states its SHA-256 (signed, and as x-amz-checksum-sha256
 * unless aws_client_checksums is off), and the answer is compared with it. An object that is read
 * whole is compared with the checksum that S3 keeps of it: SHA-256 or CRC-32 of who uploaded
 * it, else the CRC-64/NVME of S3 itself. What differs is read again. Every call is
 * asynchronous on the loop and has a blocking twin (s3_blocking_*) for threads without a loop: the
 * worker's upload thread, the CLI, tests. */
#pragma once
#include "aws.h"
#include <jansson.h>

struct s3_uri { /* a value */
    char bucket[64];
    char key[1025]; /* not encoded; may be empty */
};
bool s3_parse_uri(struct str uri, struct s3_uri *ret, struct err *err) MUST_CHECK;

struct s3_object { /* one row of a listing; strings owned by the listing */
    const char *key;
    const char *etag;
    int64_t size;
    usec_t modified;
};
struct s3_listing {
    struct s3_object *objects; /* objects[n], in key order */
    size_t n;
    struct buf strings_; /* keeps the text */
    char **texts_;
};
void s3_listing_done(struct s3_listing *l);

#define S3_CHECKSUM_N 64 /* base64 of a SHA-256, "-", a number of parts, NUL */
#define S3_CRC64_N    13 /* base64 of a CRC-64, NUL */
#define S3_CRC32_N    9  /* base64 of a CRC-32, NUL */
#define S3_WRITER_N   33 /* 32 hex digits, NUL */

struct s3_result {
    enum aws_outcome outcome;
    int status;      /* 404: not found; 412: another writer was first */
    struct err err;  /* set unless the outcome is AWS_OK */
    struct str body; /* GET: valid during the callback */
    char etag[128];
    char checksum[S3_CHECKSUM_N]; /* x-amz-checksum-sha256; "": not told */
    char crc64nvme[S3_CRC64_N];   /* x-amz-checksum-crc64nvme and -crc32 of the whole; "": so */
    char crc32[S3_CRC32_N];
    bool of_parts;              /* they are of the checksums of parts, not of the whole */
    char writer[S3_WRITER_N];   /* HEAD, GET: id of the write that made the object; "": none */
    int64_t size;               /* HEAD, GET: size of the whole object */
    struct s3_listing *listing; /* LIST: valid during the callback */
    const char *next_token;     /* LIST of one page: of the next; NULL: there is none */
};
typedef void (*s3_cb)(void *ctx, const struct s3_result *r);
void s3_get(struct aws_client *c, const struct s3_uri *u, int64_t range_from,
            int64_t range_to_incl /* -1: to the end */, size_t max_bytes, s3_cb cb, void *ctx);
/* A HEAD that is refused with 400, and so without a word, is asked once more as a GET of one byte,
 * whose answer it then has. */
void s3_head(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx);
/* The same, and the checksums are asked for. */
void s3_head_sums(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx);

/* s3_sums.c: checksums of an object as it passes. All zero: of nothing yet. */
struct s3_sums { /* a value */
    uint64_t crc64nvme;
    uint32_t crc32;
};
void s3_sums_add(struct s3_sums *s, struct str data);
/* False: r, an answer about the whole object, tells another CRC. Its SHA-256 is not looked at. */
bool s3_sums_fit(const struct s3_sums *s, const struct s3_result *r);
/* False: it tells another SHA-256 of the whole. */
bool s3_sha256_fits(const uint8_t sha256[static 32], const struct s3_result *r);
/* if_none_match: "*" to create only, else NULL. kms_key: id, ARN or alias/NAME of the key of KMS
 * that S3 encrypts it with; NULL or "": as the bucket does. */
void s3_put(struct aws_client *c, const struct s3_uri *u, struct str body, const char *content_type,
            const char *if_none_match, const char *kms_key, s3_cb cb, void *ctx);
/* The same; the body is not copied and must stay valid until the callback. */
void s3_put_lent(struct aws_client *c, const struct s3_uri *u, struct str body,
                 const char *content_type, const char *kms_key, s3_cb cb, void *ctx);
void s3_delete(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx);
/* All keys that begin with u->key, every page, at most max_keys (more is ERR_LIMIT). A repeated
 * continuation token is ERR_AWS. */
void s3_list(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb, void *ctx);
/* One page, of at most 1,000 keys, maybe none: the first one behind the key `after` ("": of all),
 * or when token is not NULL the one it was given for. Both are copied. */
void s3_list_page(struct aws_client *c, const struct s3_uri *u, const char *after,
                  const char *token, s3_cb cb, void *ctx);
/* Only the keys directly below u->key ("dir/" or ""): what lies deeper is one entry of size 0 and
 * no ETag for each folder, whose key ends with '/'. The folders of a page follow its other keys. */
void s3_list_level(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb,
                   void *ctx);

/* Blocking twins. Each `struct s3_blocking` has its own loop and is used by one thread at a time.
 * Transient failures are retried up to `tries` times with full jitter; all these calls are
 * idempotent. */
struct s3_blocking;
bool s3_blocking_new(int tries, struct s3_blocking **ret, struct err *err) MUST_CHECK;
void s3_blocking_free(struct s3_blocking *s);
/* From now on passing failures of an S3 that answers (5xx, SlowDown), and of a network that is away
 * after S3 has answered once, are retried for so long after the call began, even beyond its
 * tries. */
void s3_blocking_be_patient(struct s3_blocking *s, int64_t patience_us);
/* From now on objects are encrypted with this key of KMS, see s3_put. Borrowed. */
void s3_blocking_encrypt(struct s3_blocking *s, const char *kms_key);
/* From now on the bytes that s3_blocking_get_file receives are added to *bytes as they come. */
void s3_blocking_count(struct s3_blocking *s, _Atomic int64_t *bytes);
bool s3_blocking_get(struct s3_blocking *s, const struct s3_uri *u, size_t max_bytes,
                     struct buf *ret, struct err *err) MUST_CHECK; /* ERR_NOT_FOUND */
/* n > 0 bytes from offset `from` of the version with this ETag ("": any). ERR_CONFLICT when the
 * object has another ETag. The range must lie within the object. */
bool s3_blocking_get_range(struct s3_blocking *s, const struct s3_uri *u, int64_t from, size_t n,
                           const char *etag, struct buf *ret, struct err *err) MUST_CHECK;
bool s3_blocking_get_file(struct s3_blocking *s, const struct s3_uri *u, int fd, int64_t *ret_size,
                          /* streamed; resumes by range, pinned to the ETag */
                          struct err *err) MUST_CHECK;
struct s3_head { /* what HEAD tells; "": nothing */
    int64_t size;
    char etag[128];
    char checksum[S3_CHECKSUM_N];
    char crc64nvme[S3_CRC64_N];
    char writer[S3_WRITER_N];
};
bool s3_blocking_head(struct s3_blocking *s, const struct s3_uri *u, struct s3_head *ret,
                      struct err *err) MUST_CHECK;
bool s3_blocking_put(struct s3_blocking *s, const struct s3_uri *u, struct str body,
                     const char *content_type, bool create_only,
                     struct err *err) MUST_CHECK; /* ERR_PRECONDITION when the object exists */
bool s3_blocking_list(struct s3_blocking *s, const struct s3_uri *u, size_t max_keys,
                      struct s3_listing *ret, struct err *err) MUST_CHECK;
bool s3_blocking_list_level(struct s3_blocking *s, const struct s3_uri *u, size_t max_keys,
                            struct s3_listing *ret, struct err *err) MUST_CHECK;
/* Every key, page by page, none kept; each: false ends it. */
bool s3_blocking_list_each(struct s3_blocking *s, const struct s3_uri *u,
                           bool (*each)(void *ctx, const struct s3_object *o, struct err *err),
                           void *ctx, struct err *err) MUST_CHECK;
bool s3_blocking_delete(struct s3_blocking *s, const struct s3_uri *u, struct err *err) MUST_CHECK;

/* s3_multipart.c: stream an object of unknown size in parts of part_bytes (>= 5 MiB), larger ones
 * after S3_PARTS_SAME of them, for up to 5 TiB. An object of one part is a plain PUT. Call either
 * finish or abort; abort removes the parts. */
#define S3_UPLOAD_PARTS_MAX 10000
#define S3_PARTS_SAME       2000
/* Of part i, from 0, where the first ones have part_bytes. */
size_t s3_multipart_part_bytes(size_t part_bytes, size_t i);
struct s3_multipart;
bool s3_multipart_begin(struct s3_blocking *s, const struct s3_uri *u, const char *content_type,
                        size_t part_bytes, struct s3_multipart **ret, struct err *err) MUST_CHECK;
bool s3_multipart_add(struct s3_multipart *m, const void *p, size_t n, struct err *err) MUST_CHECK;
/* Complete the upload, with If-None-Match: * when create_only (ERR_PRECONDITION: another writer was
 * first; the parts are aborted). Frees m in every case. */
bool s3_multipart_finish(struct s3_multipart *m, bool create_only, int64_t *ret_size,
                         struct err *err) MUST_CHECK;
void s3_multipart_abort(struct s3_multipart *m);
int64_t s3_multipart_size(const struct s3_multipart *m); /* bytes added so far */
/* Hand an upload over to another process.
 * save: write the upload's members into the open object of w and append the bytes that are in no
 * part yet to tail. leave: free m and keep the upload.
 * restore: reopen a saved upload from o and take its bytes from the front of tail. ERR_NOT_FOUND
 * when S3 no longer has it, ERR_MALFORMED when o is invalid. */
struct json_out;
void s3_multipart_save(const struct s3_multipart *m, struct json_out *w, struct buf *tail);
void s3_multipart_leave(struct s3_multipart *m);
bool s3_multipart_restore(struct s3_blocking *s, const struct s3_uri *u, const char *content_type,
                          size_t part_bytes, const json_t *o, struct str *tail,
                          struct s3_multipart **ret, struct err *err) MUST_CHECK;

/* s3_uploads.c: abort every multipart upload of a key directly below prefix->key ("dir/" or "") for
 * which `ours` accepts the name after the prefix. *ret_n: uploads aborted. */
bool s3_blocking_uploads_abort(struct s3_blocking *s, const struct s3_uri *prefix,
                               bool (*ours)(void *ctx, const char *name), void *ctx, int64_t *ret_n,
                               struct err *err) MUST_CHECK;
