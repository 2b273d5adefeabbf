/* Reads of the sources of a copy: ranges of an HTTP(S) URL or of an object in S3, signed or not, in
 * any region. One remote belongs to one thread. Nothing is retried here. */
#pragma once
#include "common/buf.h"
#include "common/s3.h"

#define REMOTE_VALIDATOR_MAX 128

struct remote_config {       /* value; all borrowed */
    const char *region;      /* of sources in S3; NULL: the job's own */
    bool is_unsigned;        /* sources in S3 are asked without a signature */
    const char *auth_header; /* header with a secret, for HTTP(S) sources only ... */
    const char *auth_value;  /* ... NULL: none */
    int64_t stall_us;        /* slower than 1 KiB/s for so long: ERR_TIMEOUT */
    const _Atomic int *stop; /* not 0: the transfer under way ends */
};
struct remote;
bool remote_new(const struct remote_config *c, struct remote **ret, struct err *err) MUST_CHECK;
void remote_free(struct remote *r);

struct remote_ask {
    const char *uri;
    int64_t from;
    size_t n;              /* bytes wanted; 0: the whole, streamed to on_data */
    const char *validator; /* of the version wanted: an ETag or a date; "": any */
    bool (*on_data)(void *ctx, struct str data); /* false ends the transfer */
    void *ctx;
};
struct remote_answer {
    int status;                           /* 0: no whole answer, see err */
    struct buf body;                      /* of a ranged read, at most n bytes */
    int64_t from, to;                     /* of Content-Range, to exclusive; -1: none */
    int64_t total;                        /* bytes of the whole; -1: not told */
    char validator[REMOTE_VALIDATOR_MAX]; /* strong ETag, else Last-Modified, else "" */
    char md5[33];                         /* in hex, when the ETag of an object in S3 is one */
    struct err err; /* ERR_NETWORK, ERR_TIMEOUT; ERR_TOO_LARGE: the range was ignored */
};
/* Ask and wait. Follows redirects; the secret is sent to the source's own host only. Release with
 * remote_answer_done. */
void remote_get(struct remote *r, const struct remote_ask *ask, struct remote_answer *ret);
void remote_answer_done(struct remote_answer *a);
/* What S3 tells of the version `validator` of an object; of *ret only etag and checksums are valid.
 * False: it does not tell now, or has another version, or the client is not to compare. */
bool remote_told(struct remote *r, const char *uri, const char *validator, struct s3_result *ret);

struct remote_name {
    char *key;
    int64_t size;
};
struct remote_names {
    struct remote_name *at; /* at[n], in key order */
    size_t n, cap_;
};
/* Objects whose key begins with u->key. Retries for some seconds. */
bool remote_list(struct remote *r, const struct s3_uri *u, size_t max, struct remote_names *ret,
                 struct err *err) MUST_CHECK;
void remote_names_done(struct remote_names *n);
