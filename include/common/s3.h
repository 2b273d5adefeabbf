/* S3 objects over aws.h. URIs are s3://bucket/key; path style with a custom endpoint, virtual host
 * style else. Every call is asynchronous on the loop and has a blocking twin (s3_sync_*) for the
 * worker's upload thread, the CLI and tests. */
#pragma once
#include "aws.h"
#include <jansson.h>

struct s3_uri { /* value */
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

struct s3_result {
    enum aws_outcome outcome;
    int status;      /* 404: not there; 412: somebody else wrote it first */
    struct err err;  /* filled when not OK */
    struct str body; /* GET: lent */
    char etag[128];
    int64_t size;               /* HEAD, GET: whole object's size */
    struct s3_listing *listing; /* LIST: lent */
};
typedef void (*s3_cb)(void *ctx, const struct s3_result *r);
void s3_get(struct aws_client *c, const struct s3_uri *u, int64_t range_from,
            int64_t range_to_incl /* -1: to the end */, size_t max_bytes, s3_cb cb, void *ctx);
void s3_head(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx);
/* if_none_match: "*" to create only, NULL else. */
void s3_put(struct aws_client *c, const struct s3_uri *u, struct str body, const char *content_type,
            const char *if_none_match, s3_cb cb, void *ctx);
void s3_delete(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx);
/* All keys under u->key as a prefix, every page, at most max_keys (more is ERR_LIMIT); a repeated
 * token is ERR_AWS. */
void s3_list(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb, void *ctx);

/* Blocking twins; each owns a loop of its own inside `struct s3_blocking`, one thread at a time.
 * Transient failures are retried (full jitter, <= tries) since these are idempotent. */
struct s3_blocking;
bool s3_blocking_new(int tries, struct s3_blocking **ret, struct err *err) MUST_CHECK;
void s3_blocking_free(struct s3_blocking *s);
bool s3_blocking_get(struct s3_blocking *s, const struct s3_uri *u, size_t max_bytes,
                     struct buf *ret, struct err *err) MUST_CHECK; /* ERR_NOT_FOUND */
/* n > 0 bytes from `from`, of the version with this ETag ("": any); ERR_CONFLICT when the object
 * has become another. The range must lie within the object. */
bool s3_blocking_get_range(struct s3_blocking *s, const struct s3_uri *u, int64_t from, size_t n,
                           const char *etag, struct buf *ret, struct err *err) MUST_CHECK;
bool s3_blocking_get_file(struct s3_blocking *s, const struct s3_uri *u, int fd, int64_t *ret_size,
                          struct err *err) MUST_CHECK; /* streamed, ranged resume pinned by ETag */
bool s3_blocking_head(struct s3_blocking *s, const struct s3_uri *u, int64_t *ret_size,
                      char ret_etag[static 128], struct err *err) MUST_CHECK;
bool s3_blocking_put(struct s3_blocking *s, const struct s3_uri *u, struct str body,
                     const char *content_type, bool create_only,
                     struct err *err) MUST_CHECK; /* ERR_PRECONDITION when it was there */
bool s3_blocking_list(struct s3_blocking *s, const struct s3_uri *u, size_t max_keys,
                      struct s3_listing *ret, struct err *err) MUST_CHECK;
bool s3_blocking_delete(struct s3_blocking *s, const struct s3_uri *u, struct err *err) MUST_CHECK;

/* s3_multipart.c: stream an object of unknown size. Parts of part_bytes (>= 5 MiB); one part only
 * becomes a plain PUT. Either finish or abort must be called; abort removes the parts. */
struct s3_multipart;
bool s3_multipart_begin(struct s3_blocking *s, const struct s3_uri *u, const char *content_type,
                        size_t part_bytes, struct s3_multipart **ret, struct err *err) MUST_CHECK;
bool s3_multipart_add(struct s3_multipart *m, const void *p, size_t n, struct err *err) MUST_CHECK;
/* Completes with If-None-Match: * when create_only (ERR_PRECONDITION: somebody else won, parts
 * aborted). Frees m either way. */
bool s3_multipart_finish(struct s3_multipart *m, bool create_only, int64_t *ret_size,
                         struct err *err) MUST_CHECK;
void s3_multipart_abort(struct s3_multipart *m);
/* An upload that another process may go on with. save: members of the object that is open in w, and
 * the bytes that are in no part yet are added to tail. leave: free m, the upload stays. restore: an
 * upload as saved (o; its bytes are taken from the beginning of tail); ERR_NOT_FOUND when S3 has
 * it no more, ERR_MALFORMED when o makes no sense. */
struct json_out;
void s3_multipart_save(const struct s3_multipart *m, struct json_out *w, struct buf *tail);
void s3_multipart_leave(struct s3_multipart *m);
bool s3_multipart_restore(struct s3_blocking *s, const struct s3_uri *u, const char *content_type,
                          size_t part_bytes, const json_t *o, struct str *tail,
                          struct s3_multipart **ret, struct err *err) MUST_CHECK;

/* s3_uploads.c: abort every upload of a key directly below prefix->key ("dir/" or "") whose name
 * behind the prefix `ours` accepts. *ret_n: how many. */
bool s3_blocking_uploads_abort(struct s3_blocking *s, const struct s3_uri *prefix,
                               bool (*ours)(void *ctx, const char *name), void *ctx, int64_t *ret_n,
                               struct err *err) MUST_CHECK;
