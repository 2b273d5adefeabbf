/* Shared by common/s3.c, s3_list.c, s3_blocking.c, s3_multipart.c and s3_uploads.c: one request
 * against an object, its blocking form with retries, and the pages of a listing. */
#pragma once
#include "common/hash.h"
#include "common/s3.h"

#define S3_HEADERS_MAX      6
#define S3_WRITER_HEADER    "x-amz-meta-drover-writer"
#define S3_TIMEOUT_US       (INT64_C(900) * USEC_PER_SEC) /* a whole transfer of up to 5 GiB */
#define S3_STALL_TIMEOUT_US (INT64_C(60) * USEC_PER_SEC)
#define S3_XML_BYTES_MAX    ((size_t)8 * 1024 * 1024)
#define S3_ERROR_BYTES_MAX  ((size_t)64 * 1024)
#define S3_QUERY_BYTES_MAX  ((size_t)8 * 1024)

struct s3_spec {           /* a value; pointers are borrowed for the call */
    const char *operation; /* "GetObject", a literal */
    const char *method;
    const char *query;    /* encoded; NULL: none */
    bool of_bucket;       /* the request is about the bucket, not the key */
    bool needs_length;    /* the reply's body must come with a length */
    const char *xml_root; /* a 2xx must be a document with this root (S3 may say 200 and <Error>) */
    const char *content_type;
    struct http_header headers[S3_HEADERS_MAX];
    size_t headers_n;
    struct str body;
    bool body_borrow;
    char sha256[SHA256_HEX_N];    /* of the body, by s3_spec_checksum; "": not computed */
    char checksum[S3_CHECKSUM_N]; /* the one that is stated; "": none */
    char crc64nvme[S3_CRC64_N];   /* of a body that states none: S3's own is compared; "": not */
    bool checksum_required;       /* the answer has to repeat it */
    bool tidies;                  /* it can be done later: tried without patience */
    bool compares;                /* the body of the answer is the whole, see s3_spec_compare */
    bool is_get; /* body_max bounds the object; error documents have room of their own */
    size_t body_max;
    int64_t stall_timeout_us; /* 0: S3_STALL_TIMEOUT_US */
    bool (*on_data)(void *data_ctx, struct str data);
    void *data_ctx;
};
void s3_spec_header(struct s3_spec *spec, const char *name, const char *value);
/* Encrypt the object with this key of KMS; NULL or "": as the bucket does. A part says nothing: its
 * upload does. */
void s3_spec_encrypt(struct s3_spec *spec, const char *kms_key);
/* Compute the body's SHA-256 and, unless `how` is AWS_CHECKSUMS_OFF, state it; else the CRC-64 that
 * S3 will have made. The spec must not be copied afterwards. */
void s3_spec_checksum(struct s3_spec *spec, enum aws_checksums how);
/* Ask for the checksum of the object. */
void s3_spec_ask_checksum(struct s3_spec *spec);
/* The whole object is read into the answer's body: compare that with the object's checksum. */
void s3_spec_compare(struct s3_spec *spec, const struct aws_client *c);
/* Start it; cb runs once from the loop. result.size is the whole object's size when the answer
 * says. */
void s3_start(struct aws_client *c, const struct s3_uri *u, const struct s3_spec *spec, s3_cb cb,
              void *ctx);

/* Set outcome and err for a 2xx with an unusable body; returns false. */
bool s3_result_unreadable(struct s3_result *r, const char *operation, const char *why);

/* As s3_sums_fit, of a body in memory and by any of its checksums. */
bool s3_body_fits(struct str body, const struct s3_result *r);
void s3_crc64_text(uint64_t crc, char out[static S3_CRC64_N]);

struct s3_kept {        /* a result that outlives its callback */
    struct s3_result r; /* body views `body`, listing is NULL */
    struct buf body;
    int unknown_n; /* earlier tries of unknown outcome */
};
void s3_kept_done(struct s3_kept *k);
enum s3_again {
    S3_AGAIN_END,        /* no further try */
    S3_AGAIN_IF_PASSING, /* default: retry transient failures */
    S3_AGAIN_YES,        /* retry even a final or successful answer */
};
/* Blocking with retries. True when the outcome is AWS_OK; *ret is filled either way and needs
 * s3_kept_done. `again`, when set, is called after each try and prepares spec for the next. */
bool s3_sync_call(struct s3_blocking *s, const struct s3_uri *u, struct s3_spec *spec,
                  enum s3_again (*again)(void *ctx, struct s3_spec *spec,
                                         const struct s3_result *r),
                  void *ctx, struct s3_kept *ret, struct err *err) MUST_CHECK;
enum aws_checksums s3_sync_checksums(struct s3_blocking *s);
const char *s3_sync_kms_key(const struct s3_blocking *s);

struct s3_write { /* one write of an object */
    char writer[S3_WRITER_N];
    char checksum[S3_CHECKSUM_N]; /* as S3 would tell it; "": not known */
    char crc64nvme[S3_CRC64_N];   /* so */
    int64_t size;
    bool create_only;
};
/* A random id. */
void s3_writer_new(char out[static S3_WRITER_N]);
/* After a write ended with the failure in k and *err: true, and *err cleared, when the object under
 * the key is nevertheless the one that this write made. Else *err tells why not:
 * ERR_PRECONDITION: create_only, and the object is another writer's; ERR_AWS: it is damaged; a
 * failure of S3 when it is not known whose object it is. */
bool s3_sync_is_ours(struct s3_blocking *s, const struct s3_uri *u, const struct s3_write *w,
                     const struct s3_kept *k, struct err *err) MUST_CHECK;

struct s3_pages { /* a listing in progress */
    struct s3_uri u;
    size_t max_keys;
    bool level;  /* only what is directly below, folders as one entry */
    char *after; /* only what follows this key; NULL: all. Not sent with a token */
    struct s3_listing *listing;
    size_t cap;
    char *token; /* NULL: first page */
    int empty_n; /* pages in a row without a key */
    bool complete;
};
void s3_pages_init(struct s3_pages *p, const struct s3_uri *u, size_t max_keys);
void s3_pages_done(struct s3_pages *p);
/* Query of the next page. */
void s3_pages_query(const struct s3_pages *p, struct buf *out);
/* Add a page. False on failure, with the reason in r's outcome and err. */
bool s3_pages_add(struct s3_pages *p, struct str body, struct s3_result *r);
/* Drop all objects but the first n. */
void s3_pages_forget(struct s3_pages *p, size_t n);
